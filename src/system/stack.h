/* The free part of a thread's stack, for calls that need much stack: libunwind, and the loading of
 * libraries. Each thread finds its bounds once, with a few calls of malloc. No lock. */
#pragma once

#include <stddef.h>

/* Returns the bytes below the caller's frame. SIZE_MAX for the first thread, whose stack grows, and
 * for a stack that the program switched to by itself. */
size_t spw_stack_left(void);
