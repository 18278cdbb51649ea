/* The functions in the place of those of PyTorch's native allocator. */
#pragma once

#include "torch/library.h"

/* The library that was found. Written once, before the functions are in place. */
extern struct spw_torch_library spw_torch;

/* Puts our functions into a copy of its table, which has row->functions places. Without `tensors`
 * only those that tell for what the native allocator asks: it serves all requests then. */
void spw_torch_functions_fill(spw_torch_code **table, bool tensors);
