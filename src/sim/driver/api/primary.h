/* Primary contexts: one for each device, alive while somebody retains it.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/core/device.h"

/* cuDevicePrimaryCtxRetain. The lock may be released meanwhile. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_primary_retain(struct sim_device *device, CUcontext *ret_ctx);

/* cuDevicePrimaryCtxRelease: ends the context with the last. The lock may be released meanwhile.
 * CUDA_ERROR_INVALID_CONTEXT if nobody retains it. */
CUresult sim_primary_release(struct sim_device *device);
