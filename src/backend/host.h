/* Finds a place for chunks of host memory, with helper processes (driver/host_place.h) or from an
 * earlier verdict (driver/host_verdict.h). Locking: none; no lock of a pool is held. */
#pragma once

#include <stdbool.h>

#include "driver/driver.h"

/* Finds the place for a device, which may take seconds. False when there is none. */
bool spw_backend_host_seek(struct spw_driver *driver, int ordinal, CUdevice device,
                           CUmemLocation *ret_place);
