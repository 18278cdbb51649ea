/* The use of a device's memory by all processes, from NVIDIA's management library (NVML).
 *
 * The library is opened for each question and closed again, but stays loaded, since a share of the
 * device asks often. It is asked only after memory has run out, or for a share. Not to be called
 * with a lock held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device/state.h"

struct spw_nvml_usage {
    uint64_t total, used; /* of the device */
    uint64_t own;         /* used by this process */
    uint64_t others;      /* used by other processes */
    bool own_known;       /* false if NVML does not see this process, as in some containers */
};

/* Fills *ret_usage; false without the library, or when it does not know the device. */
bool spw_service_nvml_ask(const struct spw_device *device, struct spw_nvml_usage *ret_usage);

/* Like spw_service_nvml_ask, but also false when `own` is not known, or when NVML's device is not
 * the simulated one. */
bool spw_service_nvml_ask_own(const struct spw_device *device, struct spw_nvml_usage *ret_usage);
