/* The simulated NVML. It does not know the other libraries.
 *
 *   device    a device as NVML's handle
 *   nvml      identity and memory of the devices
 *   sensors   clocks, use, temperature and power of the devices
 *
 * Locking: see nvml.c. */
#pragma once

#include <nvml.h>

#include "sim/driver/core/control.h"

#define EXPORT __attribute__((visibility("default")))

/* Defines another name for a function that is defined earlier in the same file. */
#define EXPORT_SAME(name, of) EXPORT __typeof__(of) name __attribute__((alias(#of)))

struct nvmlDevice_st {
    unsigned int index;
    struct spillway_sim_device facts;
};

/* Checks the arguments of a call. NVML_SUCCESS if `device` is a handle of this library and `answer`
 * is not NULL; otherwise the error that the call returns. */
nvmlReturn_t sim_nvml_check(nvmlDevice_t device, const void *answer);
