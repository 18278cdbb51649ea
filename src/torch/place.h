/* The place of PyTorch's table of virtual functions: the first word of its allocator object.
 *
 * One table, since a process has one PyTorch. No locks: the word changes in one store. */
#pragma once

#include "torch/library.h"

/* Returns a copy of PyTorch's table, to put functions in: row->functions places. */
spw_torch_code **spw_torch_place_copy(const struct spw_torch_library *library);

/* Replaces PyTorch's table by the copy. */
void spw_torch_place_put(const struct spw_torch_library *library);

/* Puts PyTorch's own table back, after a wrong answer of the allocator, and reports that. Only
 * before the first tensor of the pool. */
void spw_torch_place_take_out(const struct spw_torch_library *library);
