/* NVIDIA's cuda.h, with every function under its exported name: cuMemAlloc is the old 32-bit
 * function, and cuMemAlloc_v2 the one that programs call. Used for types only: nothing is linked
 * with CUDA. */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "common/newer_cuda.h"
