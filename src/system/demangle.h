/* Readable names of C++ symbols.
 *
 * The demangler is a function of the C++ library (__cxa_demangle). It is looked up at run time,
 * because no part of spillway is linked with that library. Any thread may call. No lock is held
 * inside. */
#pragma once

#include <stdbool.h>

/* Looks for the demangler in the libraries of the process, and remembers it. If no library has it
 * and `load` is true, loads the C++ library permanently; this is tried only once. Fast after the
 * demangler was found. Returns false if there is no demangler.
 *
 * Calls the dynamic loader. The caller must hold no lock that a library could wait for while it is
 * loaded. */
bool spw_demangle_find(bool load);

/* Returns the readable form of a mangled name, which the caller must free. Returns NULL if `name`
 * is not mangled or cannot be decoded, if no demangler was found, or if there is no memory. */
char *spw_demangle(const char *name);

/* Returns true if a name is mangled by the rules of C++. Such a name contains the types of the
 * parameters. */
bool spw_demangle_is_mangled(const char *name);
