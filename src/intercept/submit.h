/* The first step of every entry that enqueues work on the device.
 *
 * The caller holds no lock; spw_serve_placement_commit takes the locks of the pools. */
#pragma once

#include "process/process.h"
#include "serve/placement.h"

/* Commits the lazy blocks, which get their memory at the first work on their device. Returns false
 * if there is too little memory, and logs this under `symbol`. The call must then fail with
 * CUDA_ERROR_OUT_OF_MEMORY. */
static inline bool spw_intercept_commit(const char *symbol)
{
    return !spw_serve_placement_is_due() || spw_serve_placement_commit(symbol) == CUDA_SUCCESS;
}
