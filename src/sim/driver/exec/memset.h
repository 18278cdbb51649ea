/* Memsets as operations.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/exec/op.h"

/* Creates the operation of a memset: `height` rows of `width` elements of 1, 2 or 4 bytes.
 * CUDA_ERROR_INVALID_VALUE for an invalid address, extent or alignment, CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult sim_memset_op_new(const CUDA_MEMSET_NODE_PARAMS *params, int device,
                           struct sim_op **ret_op);

/* The parameters of an operation of sim_memset_op_new(). */
const CUDA_MEMSET_NODE_PARAMS *sim_memset_of_op(const struct sim_op *op);
