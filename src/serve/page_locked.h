/* Figures of the host memory that the program page-locks: counters of a device, and charges of call
 * sites. They are separate from the figures of device memory, and no limit applies to them.
 *
 * Locking: takes spw_locks.page_locked. */
#pragma once

#include "device/state.h"

/* Adds `change` bytes of call site `site` to the figures of a device. `change` is negative when an
 * allocation ends. */
void spw_serve_page_locked(struct spw_device *device, uint32_t site, int64_t change);
