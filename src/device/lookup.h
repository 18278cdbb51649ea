/* Finding a device: by the driver's handle, by its default memory pool, by an address in its pool.
 *
 * No lock is taken. The result of a search by address is valid while the block at that address
 * exists. */
#pragma once

#include "device/state.h"

/* Learns the visible devices, at the start. False when CUDA is not initialised. The caller holds
 * spw_locks.process. */
bool spw_device_find_all(struct spw_driver *driver);

/* The device with a driver's handle; NULL when there is none. */
struct spw_device *spw_device_of(CUdevice handle);

/* The slow path of spw_device_default_pool: asks the driver. */
CUmemoryPool spw_device_ask_pool(struct spw_device *device);

/* The driver's default memory pool of a device; NULL when it has none. The driver is asked at first
 * use, not at the start for every device that the process can see: to make the pool, it reserves
 * addresses for twice the device's memory (cuda-python#2458). */
static inline CUmemoryPool spw_device_default_pool(struct spw_device *device)
{
    return SPW_LIKELY(atomic_load_explicit(&device->default_pool_asked, memory_order_acquire))
               ? atomic_load_explicit(&device->default_pool, memory_order_relaxed)
               : spw_device_ask_pool(device);
}

/* The device that has this default memory pool; NULL when it is not a default pool. The driver is
 * asked about devices that were not used yet only when no used device has the pool. */
struct spw_device *spw_device_of_pool(CUmemoryPool pool);

/* The pool of a device; NULL if it is not open. */
static inline struct spw_pool *spw_device_opened(struct spw_device *device)
{
    return atomic_load_explicit(&device->pool, memory_order_acquire);
}

/* The device whose pool, *ret_pool, contains an address; NULL when none does. */
static inline struct spw_device *spw_device_owner(CUdeviceptr address, struct spw_pool **ret_pool)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL && spw_pool_owns(pool, address)) {
            *ret_pool = pool;
            return spw_device_at(i);
        }
    }
    return NULL;
}
