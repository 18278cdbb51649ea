/* Reads memory of this process that may not be mapped. No lock, no allocation; errno is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` from `address`. Returns false, instead of faulting, when the memory is not
 * readable. */
bool spw_safe_read(uintptr_t address, void *ret_bytes, size_t bytes);
