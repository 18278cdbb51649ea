/* Decides by the name of a kernel if it may read addresses from memory and follow them.
 *
 * No state, no lock. The names of C++ kernels are mangled; they are read by system/demangle.h, so
 * spw_demangle_find(true) should be called before, without a lock. */
#pragma once

#include <stdbool.h>

/* True for a name that contains an entry of the list in indirect.def, for a C++ name with a pointer
 * to a pointer, and for a C++ name that cannot be read.
 *
 * False proves nothing: pointers may be members of structs, and the names of C kernels have no
 * types. */
bool spw_submit_kernel_name_may_be_indirect(const char *name);
