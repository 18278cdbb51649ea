/* Decides by the name of a kernel whether the kernel may read addresses from memory and use them.
 *
 * No state, no lock. The names of C++ kernels are mangled, and system/demangle.h decodes them. The
 * caller should therefore call spw_demangle_find(true) before, without a lock. */
#pragma once

#include <stdbool.h>

/* Returns true for three kinds of names: a name that contains an entry of indirect.def, a C++ name
 * with a pointer to a pointer, and a C++ name that cannot be decoded.
 *
 * False proves nothing: pointers may be members of structs, and the names of C kernels contain no
 * types. */
bool spw_submit_kernel_name_may_be_indirect(const char *name);
