/* Creates and destroys contexts with everything that belongs to them: streams, events, modules,
 * memory.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/core/device.h"

/* Creates a live context that is not current to any thread. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_ctx_create(struct sim_device *device, unsigned int flags, CUcontext *ret_ctx);

/* Makes the device's primary context live, with the flags of cuDevicePrimaryCtxSetFlags.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_ctx_reinstate_primary(struct sim_device *device);

/* Destroys a live context and frees everything it owns. Does nothing if another thread is already
 * destroying the context. May release the lock temporarily. */
void sim_ctx_end(CUcontext ctx);
