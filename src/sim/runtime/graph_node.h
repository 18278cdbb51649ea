/* What the files about graph nodes share.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The calling thread's current context, in which nodes that copy or fill are to run. */
cudaError_t simrt_node_context(CUcontext *ret_context);
