/* Host functions as operations.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/exec/op.h"

/* Creates an operation that calls `fn(data)` on the callback thread. Later work of the same stream
 * waits until `fn` has returned. CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OPERATING_SYSTEM,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_host_op_new(CUhostFn fn, void *data, int device, struct sim_op **ret_op);

/* Creates an operation that calls `fn(stream, status, data)`, even if the context has failed.
 * `stream` is the handle that the program used. CUDA_ERROR_OPERATING_SYSTEM,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_stream_callback_op_new(CUstreamCallback fn, CUstream stream, void *data, int device,
                                    struct sim_op **ret_op);

/* The parameters of an operation of sim_host_op_new(). */
void sim_host_op_params(const struct sim_op *op, CUDA_HOST_NODE_PARAMS *ret_params);
