/* Names of native functions by address, kept once they were looked up.
 *
 * Bounded: when the table is full, new addresses have no name. Locking: a mutex inside; the dynamic
 * loader, which is asked once for the C++ library that can make names readable, is asked without
 * it. Names stay valid as long as the process lives. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One function; NULL: not known. */
struct spw_name {
    const char *mangled;  /* as the library exports it */
    const char *readable; /* the same where it is no name of C++ */
    const char *library;  /* path */
};

/* Looks up the functions that these return addresses lead to, at most SPW_CALLSITE_NATIVE of them.
 */
void spw_callsite_names_of(const uint64_t *addresses, size_t count, struct spw_name *ret_names);
