/* The files of the libraries of another process, read as if they were loaded in this one. One
 * thread.
 *
 * Nothing is mapped, and nothing is taken from a file without a check against its size: the other
 * process chooses paths and contents, and may change the files at any time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/modules.h"

/* Gives a library of another process a place in this one's list of modules (callsite/modules.h), at
 * addresses that nothing else has. *ret_distance leads from its addresses in the process to those.
 * A library that was placed before keeps its place. From then on spw_safe_read reads from the files
 * of libraries. False when the description makes no sense, or too many were placed. */
bool spw_cli_library_place(const struct spw_module *module, uintptr_t *ret_distance);
