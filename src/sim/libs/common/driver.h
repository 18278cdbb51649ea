/* The driver functions that shims call, in a table of typed pointers. The first call fills the
 * table through cuGetProcAddress_v2, as NVIDIA's libraries do. A preloaded library that intercepts
 * cuGetProcAddress_v2 therefore sees every call.
 *
 * Locking: thread-safe. */
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "common/newer_cuda.h"

struct sim_shim_driver {
#define SIM_SHIM_FUNCTION(name, version) PFN_##name##_v##version name;
#include "sim/libs/common/driver.def"
#undef SIM_SHIM_FUNCTION
};

/* Initialises the driver and returns the table, which is never freed. NULL if the driver is
 * missing, lacks one of the functions or has no device. */
const struct sim_shim_driver *sim_shim_driver(void);

/* Returns a function that the simulated driver exports for these libraries (driver/core/control.h).
 * NULL with another driver, or with none. */
void *sim_shim_simulator(const char *name);

/* Finds the kernel of that name in the shim's own code image; the handle is valid in every context
 * and never freed. Errors: the driver's errors; CUDA_ERROR_NOT_INITIALIZED without a driver. */
CUresult sim_shim_kernel(const char *name, CUkernel *ret_kernel);
