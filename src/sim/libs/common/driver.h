/* The driver as a shim sees it: a typed table, filled through cuGetProcAddress_v2 at the first
 * call, so that whoever stands in that door sees every call.
 *
 * Locking: thread-safe. */
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

struct sim_shim_driver {
#define SIM_SHIM_FUNCTION(name, version) PFN_##name##_v##version name;
#include "sim/libs/common/driver.def"
#undef SIM_SHIM_FUNCTION
};

/* Initialised; NULL without a driver that has all of it, or without a device. */
const struct sim_shim_driver *sim_shim_driver(void);

/* The kernel of that name in a code image of the shim's own, good in every context. */
CUresult sim_shim_kernel(const char *name, CUkernel *ret_kernel);
