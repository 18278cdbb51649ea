/* What the name of a kernel says of the memory it reaches. Pure: no lock, no state. */
#pragma once

#include <stdbool.h>

/* Whether a kernel of that name, as the driver tells it, reads addresses from memory and goes on
 * from there: by the list in indirect.def, or since the types in a mangled C++ name have a pointer
 * to a pointer. False says nothing of pointers in structs, of a kernel with a C name, nor of a
 * template that names the inner pointer before. */
bool spw_track_kernel_name_is_indirect(const char *name);
