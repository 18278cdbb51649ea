/* The driver as the simulated runtime sees it: a typed table, filled once through
 * cuGetProcAddress_v2, so that whoever stands in that door sees every call.
 *
 * Locking: simrt_driver_load() is called once, by simrt_init(); then the table is read-only. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

/* One pointer per row of driver.def. Pairs are indexed by `bool ptsz`: false is the function whose
 * default stream is the context's, true the one whose default stream is the calling thread's. */
struct simrt_driver {
    PFN_cuGetProcAddress_v12000 resolve;
#define SIMRT_FUNCTION(name, version)            PFN_##name##_v##version name;
#define SIMRT_FUNCTION_PAIR(name, version, ptsz) PFN_##name##_v##version name[2];
#include "sim/runtime/driver.def"
#undef SIMRT_FUNCTION
#undef SIMRT_FUNCTION_PAIR
};

/* Valid after simrt_init() has succeeded. A function that the driver lacks answers
 * cudaErrorCallRequiresNewerDriver. */
extern struct simrt_driver simrt_driver;

/* Opens libcuda.so.1 and fills the table; calls nothing else of the driver. Errors:
 * cudaErrorInsufficientDriver without a driver that has cuGetProcAddress_v2. */
cudaError_t simrt_driver_load(void);
