/* How much memory the pool of a device may use, on the device and on the host.
 *
 * The caller holds spw_locks.process. */
#pragma once

#include "device/state.h"

/* Returns the most bytes that the pool of a device may use. This is the user's limit, reduced to
 * leave room for memory outside the pool, such as code, local memory and graphs. The simulated GPU
 * needs no such room. Of a memory that device and host share, the reserve is left. The device has
 * `total` bytes, and `free` of them are free. */
uint64_t spw_device_limit(const struct spw_driver *driver, const struct spw_device *device,
                          uint64_t total, uint64_t free);

/* Returns the host memory that one device may use; 0 if spilling is off, or if the device shares
 * the memory of the host. */
struct spw_host_limit spw_device_host_limit(const struct spw_driver *driver,
                                            const struct spw_device *device);
