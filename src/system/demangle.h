/* Readable names of C++ symbols.
 *
 * The demangler belongs to the C++ library (__cxa_demangle). It is looked up at run time, since no
 * part of spillway is linked with that library. Any thread may call; no lock is held inside. */
#pragma once

#include <stdbool.h>

/* Looks for the demangler in the libraries of the process and keeps it. If no library has it and
 * `load` is true, loads the C++ library for good; this is tried only once. Fast once the demangler
 * is found. False if there is no demangler.
 *
 * Calls the dynamic loader, so the caller holds no lock that a library could wait for while it
 * loads. */
bool spw_demangle_find(bool load);

/* The readable form of a mangled name, to be freed by the caller. NULL if `name` is not mangled or
 * cannot be read, if no demangler has been found, or without memory. */
char *spw_demangle(const char *name);

/* True if a name is mangled by the rules of C++; such a name contains the types of the
 * parameters. */
bool spw_demangle_is_mangled(const char *name);
