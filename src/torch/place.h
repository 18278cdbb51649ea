/* The place of PyTorch's table of virtual functions: the first word of its allocator object.
 *
 * One table, since a process has one PyTorch. No locks: the word changes in one store. */
#pragma once

#include "torch/library.h"

/* A copy of PyTorch's table, for functions to be put into it: row->functions places. */
spw_torch_code **spw_torch_place_copy(const struct spw_torch_library *library);

/* Puts the copy in the place of PyTorch's table. */
void spw_torch_place_put(const struct spw_torch_library *library);

/* Puts PyTorch's own table back, since the allocator does not answer as it should, and says so.
 * Before the first tensor of the pool only. */
void spw_torch_place_take_out(const struct spw_torch_library *library);
