/* Names of native functions by address. An address is looked up once, and its name is stored for
 * the life of the process.
 *
 * The table is bounded: when it is full, new addresses have no name. Locking: the table has a
 * mutex. The dynamic loader, which finds the C++ demangler, is called without that mutex. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One function. Members are NULL if unknown. */
struct spw_name {
    const char *mangled;  /* as the library exports it */
    const char *readable; /* demangled; equal to `mangled` if that is not a C++ name */
    const char *library;  /* path of the library */
};

/* Finds the functions of `count` return addresses. `count` is at most SPW_CALLSITE_NATIVE. */
void spw_callsite_names_of(const uint64_t *addresses, size_t count, struct spw_name *ret_names);
