/* Figures of the host memory that the program page-locks: counters of a device and charges of call
 * sites. They are apart from the figures of device memory, and no limit counts them.
 *
 * Locking: takes spw_locks.page_locked. */
#pragma once

#include "device/state.h"

/* Adds `change` bytes of call site `site` to the figures of a device; a negative number when an
 * allocation of that size ends. */
void spw_serve_page_locked(struct spw_device *device, uint32_t site, int64_t change);
