/* The functions that replace those of PyTorch's native allocator. */
#pragma once

#include "torch/library.h"

/* Puts our functions into a copy of its table, which has row->functions places. Without `tensors`,
 * puts in only the functions that note why the native allocator asks for memory: that allocator
 * then serves all requests. */
void spw_torch_functions_fill(spw_torch_code **table, bool tensors);
