/* NVIDIA's cuda_runtime_api.h, with every function under its exported name, and without warnings
 * about deprecated ones. Used for types only: nothing is linked with CUDA. */
#pragma once

#include "driver/cuda_api.h"

#define CUDA_ENABLE_DEPRECATED
#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12050
typedef cudaError_t CUDARTAPI
spw_entry_point_by_version(const char *symbol, void **function, unsigned int version,
                           unsigned long long flags, enum cudaDriverEntryPointQueryResult *status);

spw_entry_point_by_version cudaGetDriverEntryPointByVersion;
spw_entry_point_by_version cudaGetDriverEntryPointByVersion_ptsz;
#endif
