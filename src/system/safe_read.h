/* Reads memory of this process that may not be mapped. No lock, no allocation; errno is
 * preserved. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` from `address`. If the memory is not readable, returns false instead of
 * faulting. */
bool spw_safe_read(uintptr_t address, void *ret_bytes, size_t bytes);
