/* Reads memory of this process that may not be mapped. No lock, no allocation; errno is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` from `address`. Returns false, instead of faulting, when it is not readable. */
bool spw_safe_read(uintptr_t address, void *ret_bytes, size_t bytes);

/* A reader that replaces spw_safe_read's. */
typedef bool spw_peek_function(uintptr_t address, void *ret_bytes, size_t bytes);

/* From now on spw_safe_read calls `read`: for a command that reads the libraries of another
 * process. NULL: this process's memory is read again. */
void spw_peek_with(spw_peek_function *read);
