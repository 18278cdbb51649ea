/* Finds functions of the C library that spillway also exports. It searches the symbol table of the
 * loaded library, because a look-up by name would find spillway's functions.
 *
 * No locks. May be called as soon as the process runs. Calls no function that a sanitizer
 * replaces. */
#pragma once

/* Returns the address of a function in libc.so.6 or, with an older glibc, in libdl.so.2; NULL if
 * neither has it. */
void *spw_driver_libc_function(const char *name);
