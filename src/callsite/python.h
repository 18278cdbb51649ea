/* The Python interpreter of this process, if there is one that can be read.
 *
 * The interpreter is looked up by the names it exports, and checked on the first stack that has
 * Python frames (python_check.h). If it cannot be read, Python stacks are switched off for good,
 * and one line is logged. Any thread. No lock: while one thread looks up or checks, others wait for
 * it, at most 20 ms in all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/cpython/python_walk.h"

/* The thread state of the calling thread, and its interpreter in *ret_python. 0 when the thread
 * runs no Python, or none that can be read. Looks for an interpreter only if `look` is set, since
 * that calls the dynamic loader. */
uintptr_t spw_callsite_python_thread(bool look, const struct spw_python **ret_python);

/* In the child of a fork: allows a new look-up if the fork interrupted one. */
void spw_callsite_python_reset(void);
