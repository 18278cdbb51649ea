/* Checks once, with reads that cannot fault, that an interpreter has the expected layout. After
 * that, its stacks are read without further checks. No locking, no allocation. */
#pragma once

#include <stdint.h>

#include "callsite/cpython/python_walk.h"

/* Compares the calling thread's stack with the layout. Returns NULL if they agree; otherwise a
 * static string that describes the difference. *ret_frames is the number of frames of functions. If
 * it is 0, the result proves nothing. */
const char *spw_callsite_python_check(const struct spw_python *python, uintptr_t thread,
                                      int *ret_frames);
