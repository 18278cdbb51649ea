/* The classes of the modules (torch.nn.Module) that a Python stack is in. They are read from the
 * first argument, `self`, in the frames of each module's call.
 *
 * Other threads may change the objects during the read, and a frame may already have released its
 * `self`. Every pointer is therefore followed with a read that cannot fault, and an object that
 * does not look like a module is ignored. This takes a few microseconds, once for each new site.
 * Locking: none. No function of the interpreter is called. */
#pragma once

#include <stddef.h>

#include "callsite/cpython/python_walk.h"

enum { SPW_PYTHON_MODULES = 512 }; /* most bytes of a path of classes; a longer path is shortened */

/* Writes the classes as a path, with the outermost module first: "GPT/Block/Attention". A module
 * that has several frames is named once. If the path does not fit, its outermost classes are
 * omitted. Returns the length of the path, without the zero byte. Returns 0 if there is no module,
 * or if the layout has no offset of the arguments. `ret_path` has SPW_PYTHON_MODULES bytes. */
size_t spw_callsite_python_modules(const struct spw_python *python,
                                   const struct spw_python_stack *stack, char *ret_path);
