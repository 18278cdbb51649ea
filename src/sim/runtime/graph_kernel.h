/* Converts the parameters of graph nodes to the driver's structs.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Convert the parameters of a node. Errors: cudaErrorInvalidValue without parameters; the errors
 * that the node's kind has. */
cudaError_t simrt_kernel_params(const struct cudaKernelNodeParams *params,
                                CUDA_KERNEL_NODE_PARAMS *ret_params);
cudaError_t simrt_node_params(const struct cudaGraphNodeParams *params,
                              CUgraphNodeParams *ret_params);
