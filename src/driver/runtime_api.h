/* NVIDIA's cuda_runtime_api.h, with every function under the name the runtime exports, and without
 * the warnings about functions that programs still call. Types only: nothing of CUDA is linked. */
#pragma once

#include "driver/cuda_api.h"

#define CUDA_ENABLE_DEPRECATED
#include <cuda_runtime_api.h>
