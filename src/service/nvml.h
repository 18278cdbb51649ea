/* The use of a device's memory by all processes, as NVIDIA's management library (NVML) reports it.
 *
 * Each question opens the library and closes it again. The library stays loaded, because the code
 * that shares a device uses it often. NVML is asked only after memory has run out, or to share a
 * device. Not to be called with a lock held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device/state.h"

struct spw_nvml_usage {
    uint64_t total, used; /* of the device */
    uint64_t own;         /* used by this process */
    uint64_t others;      /* used by other processes */
    bool own_known; /* false if NVML does not see this process, as happens in some containers */
};

/* Fills *ret_usage. Returns false if the library is missing or does not know the device, or if the
 * calling thread has too little stack for it. */
bool spw_service_nvml_ask(const struct spw_device *device, struct spw_nvml_usage *ret_usage);

/* Like spw_service_nvml_ask, but also returns false if `own` is not known, or if a simulated device
 * differs from the device that NVML reports. */
bool spw_service_nvml_ask_own(const struct spw_device *device, struct spw_nvml_usage *ret_usage);
