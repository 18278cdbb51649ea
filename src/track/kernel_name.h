/* Kernels that read addresses from memory, recognised by name. Pure: no lock, no state. */
#pragma once

#include <stdbool.h>

/* True when the name, as the driver gives it, is that of a kernel that reads addresses from memory
 * and follows them: it is in indirect.def, or its mangled C++ name has a parameter of type pointer
 * to pointer. False proves nothing: a struct may contain pointers, a C name has no types, and a
 * template may name the inner pointer earlier. */
bool spw_track_kernel_name_is_indirect(const char *name);
