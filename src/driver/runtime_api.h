/* NVIDIA's cuda_runtime_api.h, with every function under its exported name, and without warnings
 * about deprecated ones. Used for types only: nothing is linked with CUDA. */
#pragma once

#include "driver/cuda_api.h"

#define CUDA_ENABLE_DEPRECATED
#include <cuda_runtime_api.h>
