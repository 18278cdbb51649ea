/* Replaces the functions that a resolver (dlsym, cuGetProcAddress) returns by spillway's entries.
 *
 * The real resolver is always asked first. The address that it returns selects the entry, not the
 * name. Versions of a function, and variants for per-thread streams, can therefore not be mixed up.
 * No locks. */
#pragma once

/* Returns the entry for the driver's function at `address`. Returns `address` itself if the
 * function is not in the list, or if spillway is off. `name` is the name that the program asked
 * for. It is only logged. */
void *spw_intercept_resolve(void *address, const char *name);
