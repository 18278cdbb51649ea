/* The host tier of a device, and whether blocks may move to it and back. */
#pragma once

#include "device/state.h"

/* Returns the host tier of a device; NULL if there is none. A call must read it only once, because
 * another thread may close it in the meantime. The caller holds a lease. */
static inline struct spw_migrate *spw_device_tier(const struct spw_device *device)
{
    return atomic_load_explicit(&device->tier, memory_order_acquire);
}

/* Returns true if blocks may move between device and host: no capture is open, and spillway sees
 * all work that the program submits (process/unseen.h). No lock may be held. */
bool spw_device_may_move(void);
