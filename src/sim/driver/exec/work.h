/* The work of a context as a whole: its state, and waiting for all of it.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"

/* Creates ctx->work for a new context, with its legacy stream. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_work_create(CUcontext ctx);

/* Frees ctx->work, after its streams, events and modules are gone, and sets it to NULL. */
void sim_work_destroy(CUcontext ctx);

/* Run the scheduler until all work submitted so far is done, in all contexts of a device or in one
 * context. May release the lock temporarily. For a device, returns the sticky error of the current
 * context, if there is one. For a context, returns the context's sticky error, or
 * CUDA_ERROR_CONTEXT_IS_DESTROYED if the context has ended. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_work_drain_device(struct sim_device *device);
CUresult sim_work_drain_context(CUcontext ctx);

/* Must be called by `function` before it frees or unmaps memory. On a real device, queued work that
 * uses the range would fault. If there is such work, CUDA_ERROR_ILLEGAL_ADDRESS becomes the sticky
 * error of the contexts of `devices` (a bit per ordinal), with one warning per process. */
void sim_work_check_unused(uint64_t start, uint64_t size, uint64_t devices, const char *function);
