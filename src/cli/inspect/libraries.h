/* Makes the files of another process's libraries readable as if this process had loaded them. One
 * thread.
 *
 * The other process chooses the paths and contents and may change them at any time, so files are
 * not mapped, and every offset is checked against the size of the file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/modules.h"

/* Adds a library of another process to this process's list of modules (callsite/modules.h), at
 * unused addresses. *ret_distance is the difference to the library's addresses in that process. A
 * library that was added before keeps its addresses. spw_callsite_modules_read reads the new
 * addresses from the file. False when the description is invalid, or the list is full. */
bool spw_cli_libraries_add(const struct spw_module *module, uintptr_t *ret_distance);
