/* A device of the simulated NVML.
 *
 * Locking: as nvml.c says. */
#pragma once

#include <nvml.h>

#include "sim/driver/core/control.h"

#define EXPORT __attribute__((visibility("default")))

struct nvmlDevice_st {
    unsigned int index;
    struct spillway_sim_device facts;
};

/* NVML_SUCCESS for a handle of this library and a place for the answer; else the error of a call
 * with them. */
nvmlReturn_t sim_nvml_check(nvmlDevice_t device, const void *answer);
