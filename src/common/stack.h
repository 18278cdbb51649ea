/* How much of its stack a thread has left, for what needs much of it: libunwind, and libraries that
 * are loaded. The bounds are asked for once in each thread, with a few calls of malloc. No lock. */
#pragma once

#include <stddef.h>

/* Returns the bytes below the caller's frame. SIZE_MAX for the first thread, whose stack grows, and
 * for a stack that the program switched to by itself. */
size_t spw_stack_left(void);
