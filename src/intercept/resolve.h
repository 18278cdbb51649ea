/* Replaces the functions that a resolver returns (dlsym, cuGetProcAddress) by our entries.
 *
 * The real resolver is always asked first. The entry is chosen by the address that it returned, not
 * by the name, so that versions and per-thread-stream variants are never mixed up. No locks. */
#pragma once

/* The entry for the driver's function at `address`. Returns `address` itself if the function is not
 * in the list, or if spillway is off. `name` is the name that was asked for, which is only
 * logged. */
void *spw_intercept_resolve(void *address, const char *name);
