/* Which binary form the names in these sources mean. CUDA 13 gave some names the form that CUDA 12
 * calls <name>_v2 or _v3: a source defines that form under CUDA 13's name, and with headers of CUDA
 * 12 the exported symbol gets CUDA 12's name. abi12.c has the older forms. */
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
