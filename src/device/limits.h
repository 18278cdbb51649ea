/* How much memory of the device, and of the host, the pool of a device may use.
 *
 * The caller holds spw_locks.process. */
#pragma once

#include "device/state.h"

/* The most bytes that the pool of a device may use: the user's limit, reduced to leave room for
 * memory outside the pool, such as code, local memory and graphs. The device has `total` bytes, and
 * `free` of them are free. The simulated GPU needs no such room. */
uint64_t spw_device_limit(const struct spw_driver *driver, const struct spw_device *device,
                          uint64_t total, uint64_t free);

/* The host memory that one device may use; 0: spilling is off. */
uint64_t spw_device_host_limit(const struct spw_driver *driver);
