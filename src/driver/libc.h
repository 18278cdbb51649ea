/* Functions of the C library that spillway exports itself: no look-up by name gets past our own
 * definition to them, so the library's symbol table is read instead. No locks; safe from the first
 * instruction of the process on, and calls nothing that a sanitizer stands in front of. */
#pragma once

/* The address of a function in libc.so.6 or, of an older glibc, in libdl.so.2; NULL: neither has
 * it. */
void *spw_driver_libc_function(const char *name);
