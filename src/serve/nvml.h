/* Who else uses a device's memory, as NVIDIA's management library tells it.
 *
 * The library is opened when it is asked, and given up again: nothing of it is used before memory
 * has run out. No locking; not to be called with a lock held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "track/process.h"

struct spw_nvml_usage {
    uint64_t total, used; /* of the device */
    uint64_t own;         /* of it, this process's */
    uint64_t others;      /* other processes' */
    bool own_known;       /* processes are told apart: not in every container */
};

/* False when there is no such library, or it does not know the device. */
bool spw_serve_nvml_ask(const struct spw_device *device, struct spw_nvml_usage *ret_usage);
