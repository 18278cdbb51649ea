/* Makes one call of malloc, calloc or realloc fail, and counts what was allocated. The program is
 * linked with --wrap for these and free, which replaces them with the functions of malloc_faults.c.
 * For one thread. */
#pragma once

/* Calls up to the one that fails; 0: none will. Counted down, so it is 0 after the failure. */
extern long calls_until_failure;

/* Allocations that were not freed yet, as far as the program itself made and freed them. */
extern long live_allocations;
