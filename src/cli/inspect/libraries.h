/* Reads the library files of another process as if this process had loaded the libraries. One
 * thread.
 *
 * The other process chooses the paths and the contents of the files, and may change both at any
 * time. Therefore files are not mapped, and every offset is checked against the size of the
 * file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/modules.h"

/* Adds a library of another process to this process's list of modules (callsite/modules.h), at
 * unused addresses. *ret_distance is the difference between these addresses and the library's
 * addresses in the other process. A library that was added before keeps its addresses. For these
 * addresses, spw_callsite_modules_read reads the file. Returns false if the description is invalid
 * or if the list is full. */
bool spw_cli_libraries_add(const struct spw_module *module, uintptr_t *ret_distance);
