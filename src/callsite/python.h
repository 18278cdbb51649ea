/* Finds the Python interpreter of this process, if there is one that can be read.
 *
 * The interpreter is looked up by the names that it exports, and checked on the first stack that
 * has Python frames (python_check.h). If it cannot be read, one line is logged and Python stacks
 * are switched off permanently. Any thread. No lock is taken. While one thread looks up or checks
 * the interpreter, other threads wait at most 20 ms in all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/cpython/python_walk.h"

/* Returns the thread state of the calling thread, and its interpreter in *ret_python. Returns 0 if
 * the thread runs no Python, or an interpreter that cannot be read. Searches for an interpreter
 * only if `look` is set, because the search calls the dynamic loader. */
uintptr_t spw_callsite_python_thread(bool look, const struct spw_python **ret_python);

/* In a child after fork: allows a new look-up if the fork interrupted one. */
void spw_callsite_python_reset(void);
