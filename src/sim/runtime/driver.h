/* The driver as the simulated runtime sees it: a typed table, filled once through
 * cuGetProcAddress_v2, so that whoever stands in that door sees every call.
 *
 * Locking: simrt_driver_load() is called once, by simrt_init(); then the table is read-only. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

/* spillway_sim_block() of sim/driver/core/control.h. */
typedef void simrt_tell_block(unsigned long long address, unsigned long long bytes);

/* One pointer per row of driver.def. Pairs are indexed by `bool ptsz`: false is the function whose
 * default stream is the context's, true the one whose default stream is the calling thread's. */
struct simrt_driver {
    PFN_cuGetProcAddress_v12000 resolve;
    simrt_tell_block *tell_block; /* of the simulated driver; NULL: it is another */
#define SIMRT_FUNCTION(name, version)            PFN_##name##_v##version name;
#define SIMRT_FUNCTION_PAIR(name, version, ptsz) PFN_##name##_v##version name[2];
#include "sim/runtime/driver.def"
#undef SIMRT_FUNCTION
#undef SIMRT_FUNCTION_PAIR
};

/* Valid after simrt_init() has succeeded. A function that the driver lacks answers
 * cudaErrorCallRequiresNewerDriver. */
extern struct simrt_driver simrt_driver;

/* The program has got a block: tells the driver, and returns the result of the allocation. Without
 * one, `address` is not looked at. */
CUresult simrt_block_made(CUresult result, void *const *address, size_t size);

/* It gives one back; NULL is ignored. */
void simrt_block_goes(const void *address);

/* Opens libcuda.so.1 and fills the table; calls nothing else of the driver. Errors:
 * cudaErrorInsufficientDriver without a driver that has cuGetProcAddress_v2. */
cudaError_t simrt_driver_load(void);
