/* Common parts of the files on graph nodes.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The context of copy and fill nodes: the calling thread's current one. */
cudaError_t simrt_node_context(CUcontext *ret_context);
