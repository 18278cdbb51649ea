/* The ABIs under the names in these sources. In CUDA 13, some functions have the ABI that CUDA 12
 * calls <name>_v2 or <name>_v3. The sources of the runtime define this ABI under CUDA 13's name.
 * When the sources are compiled with headers of CUDA 12, the exported symbol has CUDA 12's name.
 * abi12.c has the older ABIs. */
#pragma once

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 13000
#    undef cudaStreamGetCaptureInfo
#    define cudaStreamGetCaptureInfo            cudaStreamGetCaptureInfo_v3
#    define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#    define cudaMemAdvise                       cudaMemAdvise_v2
#    define cudaMemPrefetchAsync                cudaMemPrefetchAsync_v2
#    define cudaGraphAddDependencies            cudaGraphAddDependencies_v2
#    define cudaGraphAddNode                    cudaGraphAddNode_v2
#    define cudaGraphGetEdges                   cudaGraphGetEdges_v2
#    define cudaGraphNodeGetDependencies        cudaGraphNodeGetDependencies_v2
#    define cudaGraphNodeGetDependentNodes      cudaGraphNodeGetDependentNodes_v2
#    define cudaGraphRemoveDependencies         cudaGraphRemoveDependencies_v2
#endif
