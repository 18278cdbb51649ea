/* Makes the pool of a device, with its backend and its host tier. */
#pragma once

#include "backend/backend.h"
#include "device/state.h"

/* Makes pool, backend and host tier. *ret_tier is NULL if spilling is off, or if there is no memory
 * for the tier. `context` is a context of the device; NULL if none is known. The caller holds
 * spw_locks.process. */
enum spw_err spw_device_make(struct spw_device *device, CUcontext context,
                             struct spw_pool **ret_pool, struct spw_backend **ret_backend,
                             struct spw_migrate **ret_tier);
