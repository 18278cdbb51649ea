/* Kernel launches as operations.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/kernels/module.h"

/* Creates the operation of a launch on the device of `ctx`. The kernel is params->func (a
 * CUfunction, or a CUkernel passed as one) or, if params->func is NULL, params->kern. Parameters
 * with a known layout are copied. Other parameters are not read. Charges the device for local
 * memory. CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
 * CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_launch_op_new(const CUDA_KERNEL_NODE_PARAMS *params, CUcontext ctx, bool cooperative,
                           struct sim_op **ret_op);

/* The parameters of a launch. kernelParams points into the operation; NULL if the kernel's
 * parameters are not known. */
const CUDA_KERNEL_NODE_PARAMS *sim_launch_of_op(const struct sim_op *op);

/* The source from which the layout of a launch's arguments is known. */
enum spw_layout sim_launch_layout(const struct sim_op *op);

/* True if the kernel is built in and computes its results (sim_builtin_computes()). */
bool sim_launch_computes(const struct sim_op *op);
