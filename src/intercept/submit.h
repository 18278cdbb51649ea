/* The first and the last step of entries.
 *
 * The caller holds no lock; spw_serve_placement_commit takes the locks of the pools. */
#pragma once

#include "common/likely.h"
#include "device/spill.h"
#include "process/process.h"
#include "serve/placement.h"

/* The first step of every entry that enqueues work on the device. Commits the lazy blocks, which
 * get their memory at the first work on their device. Returns false if there is too little memory,
 * and logs this under `symbol`. The call must then fail with CUDA_ERROR_OUT_OF_MEMORY. */
static inline bool spw_intercept_commit(const char *symbol)
{
    return !spw_serve_placement_is_due() || spw_serve_placement_commit(symbol) == CUDA_SUCCESS;
}

/* The last step of every entry of a function of the driver. Returns `result`. */
static inline CUresult spw_intercept_end(CUresult result)
{
    if (SPW_UNLIKELY(result == CUDA_ERROR_ILLEGAL_ADDRESS)) {
        spw_device_explain_fault();
    }
    return result;
}
