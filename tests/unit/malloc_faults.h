/* Makes one call of malloc, calloc or realloc fail. The program is linked with --wrap for these
 * three, which replaces them with the functions of malloc_faults.c. For one thread. */
#pragma once

/* Calls up to the one that fails; 0: none will. Counted down, so it is 0 after the failure. */
extern long calls_until_failure;
