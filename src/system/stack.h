/* The free part of a thread's stack, for calls that need a large stack: libunwind, and the loading
 * of libraries. Each thread determines its bounds once, with a few calls of malloc. No lock. */
#pragma once

#include <stddef.h>

/* Returns the number of bytes below the caller's frame. Returns SIZE_MAX for the first thread,
 * whose stack grows, and for a stack that the program switched to itself. */
size_t spw_stack_left(void);
