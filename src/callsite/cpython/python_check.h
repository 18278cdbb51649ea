/* Checks once, with reads that cannot fault, that an interpreter is laid out as expected. After
 * that, its stacks are read without further checks. No locking, no allocation. */
#pragma once

#include <stdint.h>

#include "callsite/cpython/python_walk.h"

/* Compares the calling thread's stack with the layout. Returns NULL when they agree, or a static
 * string with the difference. *ret_frames is the number of frames of functions; if it is 0, the
 * answer proves nothing. */
const char *spw_callsite_python_check(const struct spw_python *python, uintptr_t thread,
                                      int *ret_frames);
