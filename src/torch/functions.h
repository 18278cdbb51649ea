/* The functions that replace those of PyTorch's native allocator. */
#pragma once

#include "torch/library.h"

/* Puts the functions into `table`, a copy of the native allocator's table with row->functions
 * entries. Without `tensors`, replaces only the functions that record why the native allocator
 * requests memory. The native allocator then serves all requests. */
void spw_torch_functions_fill(spw_torch_code **table, bool tensors);
