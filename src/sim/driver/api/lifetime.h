/* Creation and end of contexts, with everything that belongs to them: streams, events, modules,
 * memory.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/core/device.h"

/* A new context, live, not current to any thread. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_ctx_create(struct sim_device *device, unsigned int flags, CUcontext *ret_ctx);

/* Brings the device's primary context to life, with the flags of cuDevicePrimaryCtxSetFlags.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_ctx_reinstate_primary(struct sim_device *device);

/* Ends a live context and frees all that it owns. Does nothing if another thread is ending it. May
 * release the lock in between. */
void sim_ctx_end(CUcontext ctx);
