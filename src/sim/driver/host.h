/* Host functions as operations.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/op.h"

/* An operation that calls `fn(data)` on the callback thread; what comes after it in its stream
 * waits for the return. CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OPERATING_SYSTEM,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_host_op_new(CUhostFn fn, void *data, int device, struct sim_op **ret_op);

/* What such an operation was made from. */
void sim_host_op_params(const struct sim_op *op, CUDA_HOST_NODE_PARAMS *ret_params);
