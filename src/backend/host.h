/* Finds a place for chunks of host memory: by helper processes (driver/host_place.h), or by a
 * verdict that was stored earlier (driver/host_verdict.h). Locking: none; the caller holds no
 * pool's lock. */
#pragma once

#include <stdbool.h>

#include "driver/driver.h"

/* Finds the place for a device. This may take seconds. Returns false if there is none. */
bool spw_backend_host_seek(struct spw_driver *driver, int ordinal, CUdevice device,
                           CUmemLocation *ret_place);
