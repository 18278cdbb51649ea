/* Reading memory of this process that may not be there. No lock, no allocation; errno is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` from an address that may be wrong; false when it is. */
bool spw_safe_read(uintptr_t address, void *ret_bytes, size_t bytes);
