/* From what a resolver found to what the program gets: the entry of exactly that function.
 *
 * The real resolver is always asked first; its answer is mapped by address, so that versions and
 * per-thread twins cannot be mixed up. No locks. */
#pragma once

/* Our entry for the driver function at `address`, or `address` itself when it is not in the list or
 * nothing is substituted. `name`: what was asked for. */
void *spw_intercept_resolve(void *address, const char *name);
