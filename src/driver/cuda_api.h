/* NVIDIA's cuda.h, with every function under its exported name. In this project, cuMemAlloc
 * therefore means the old 32-bit function, and cuMemAlloc_v2 means the function that programs call.
 * The header is used for types only: nothing is linked with CUDA. */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "common/newer_cuda.h"
