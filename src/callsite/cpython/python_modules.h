/* The classes of the modules (torch.nn.Module) that a Python stack is in. They are read from the
 * first argument, `self`, in the frames of each module's call.
 *
 * Other threads may change the objects during the read, and a frame may have released its `self`.
 * So every pointer is followed with a read that cannot fault, and an object that does not look like
 * a module is left out. This takes some microseconds, once for each new site. Locking: none. No
 * function of the interpreter is called. */
#pragma once

#include <stddef.h>

#include "callsite/cpython/python_walk.h"

enum { SPW_PYTHON_MODULES = 512 }; /* bytes of a path of classes; a longer path is cut */

/* Writes the classes as a path, the outermost module first: "GPT/Block/Attention". A module that
 * several frames belong to is named once. A path that does not fit loses its outermost classes.
 * Returns the length of the path, without the zero byte; 0: there is no module, or the layout has
 * no offset of the arguments. `ret_path` has SPW_PYTHON_MODULES bytes. */
size_t spw_callsite_python_modules(const struct spw_python *python,
                                   const struct spw_python_stack *stack, char *ret_path);
