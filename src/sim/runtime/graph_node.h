/* Common parts of the files on graph nodes.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The calling thread's current context, in which copy and fill nodes run. */
cudaError_t simrt_node_context(CUcontext *ret_context);
