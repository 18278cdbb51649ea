/* A device that has no memory of its own, but uses the host's (driver/one_memory.h). There is one
 * budget for both: the available memory of the machine, less a reserve, and the memory that the
 * control groups leave. */
#pragma once

#include "device/state.h"

/* Decides, once, whether the device has memory of its own. Caller holds spw_locks.process. */
void spw_device_one_memory_find(struct spw_device *device);

/* Returns true if the device has no memory of its own. Must not be called with spw_locks.process
 * held. */
bool spw_device_has_one_memory(struct spw_device *device);

/* Returns how many bytes may be taken from the one memory now, by device or host. Reads files.
 * UINT64_MAX if the device has memory of its own, or if nothing is known of it yet. No lock. */
uint64_t spw_device_one_memory_room(const struct spw_device *device);
