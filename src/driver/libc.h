/* Finds functions of the C library that spillway exports too, so that a look-up by name would find
 * ours: reads the symbol table of the loaded library.
 *
 * No locks. May be called as soon as the process runs, and calls no function that a sanitizer
 * replaces. */
#pragma once

/* The address of a function in libc.so.6 or, with an older glibc, in libdl.so.2. NULL if neither
 * has it. */
void *spw_driver_libc_function(const char *name);
