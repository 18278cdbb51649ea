/* Primary contexts: one for each device, alive while it is retained.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/core/device.h"

/* cuDevicePrimaryCtxRetain. May release the lock temporarily. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_primary_retain(struct sim_device *device, CUcontext *ret_ctx);

/* cuDevicePrimaryCtxRelease: the last release destroys the context. May release the lock
 * temporarily. CUDA_ERROR_INVALID_CONTEXT if the context is not retained. */
CUresult sim_primary_release(struct sim_device *device);
