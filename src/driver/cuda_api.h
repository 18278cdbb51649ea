/* NVIDIA's cuda.h, with every function declared under the name the driver exports: cuMemAlloc is
 * then the old 32-bit function and cuMemAlloc_v2 the one that programs call. Types only: nothing of
 * CUDA is linked. */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
