/* The word in memory that points to PyTorch's table of virtual functions: the first word of its
 * allocator object.
 *
 * There is one such table, because a process has only one PyTorch. No locks: the word changes in a
 * single store. */
#pragma once

#include "torch/library.h"

/* Returns a copy of PyTorch's table, with row->functions entries that the caller may replace. */
spw_torch_code **spw_torch_place_copy(const struct spw_torch_library *library);

/* Replaces PyTorch's table by the copy. */
void spw_torch_place_put(const struct spw_torch_library *library);

/* Restores PyTorch's own table, and reports this. Called after the allocator returned a wrong
 * result. Must be called before the pool serves the first tensor. */
void spw_torch_place_take_out(const struct spw_torch_library *library);
