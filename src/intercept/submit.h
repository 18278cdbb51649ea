/* A step of the entries that enqueue work on the device.
 *
 * No lock is held by the caller; spw_serve_placement_commit takes those of the pools. */
#pragma once

#include "serve/placement.h"
#include "track/process.h"

/* Gives memory to the blocks that were to get it at the first work on their device. False when
 * there is too little, which is logged under `symbol`: the call must fail with
 * CUDA_ERROR_OUT_OF_MEMORY. */
static inline bool spw_intercept_commit(const char *symbol)
{
    return !spw_serve_placement_is_due() || spw_serve_placement_commit(symbol) == CUDA_SUCCESS;
}
