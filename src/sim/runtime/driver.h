/* The driver functions that the runtime calls, in a table of typed pointers. The table is filled
 * once through cuGetProcAddress_v2, as NVIDIA's runtime does. A preloaded library that intercepts
 * cuGetProcAddress_v2 therefore sees every call.
 *
 * Locking: none needed. simrt_init() calls simrt_driver_load() once; afterwards the table is
 * read-only. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "common/newer_cuda.h"

/* The type of spillway_sim_block() in sim/driver/core/control.h. */
typedef void simrt_report_block(unsigned long long address, unsigned long long bytes);

/* One pointer, or a pair, for each row of driver.def. `bool ptsz` indexes a pair. The default
 * stream of variant [false] is the context's. In variant [true] it is the calling thread's. */
struct simrt_driver {
    PFN_cuGetProcAddress_v12000 resolve;
    simrt_report_block *report_block; /* NULL if the driver is not the simulated one */
#define SIMRT_FUNCTION(name, version)            PFN_##name##_v##version name;
#define SIMRT_FUNCTION_PAIR(name, version, ptsz) PFN_##name##_v##version name[2];
#include "sim/runtime/driver.def"
#undef SIMRT_FUNCTION
#undef SIMRT_FUNCTION_PAIR
};

/* Valid after simrt_init() has succeeded. Functions that the driver lacks return
 * cudaErrorCallRequiresNewerDriver. */
extern struct simrt_driver simrt_driver;

/* If `result` is a success, reports an allocation by the program to the simulated driver. *address
 * is read only in this case. Returns `result`. */
CUresult simrt_block_allocated(CUresult result, void *const *address, size_t size);

/* Reports that the program frees a block. NULL is ignored. */
void simrt_block_freed(const void *address);

/* Opens libcuda.so.1 and fills the table; calls no other driver function.
 * cudaErrorInsufficientDriver without a driver that has cuGetProcAddress_v2. */
cudaError_t simrt_driver_load(void);
