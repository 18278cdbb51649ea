/* What the library of library.c offers. Results are those of CUDA; 0 is success. */
#pragma once

#include <cuda.h>

struct shared {
    size_t bytes; /* to be set by the caller, a multiple of 2 MiB */
    CUdeviceptr address;
    CUipcMemHandle handle;              /* ways "runtime" and "driver" */
    CUmemGenericAllocationHandle chunk; /* way "handle" */
};

/* share() allocates memory that another process could open, and unshare() frees it. `way`: runtime,
 * driver, stream or handle. */
typedef int share_function(const char *way, struct shared *shared);

share_function share, unshare;
