/* Finds a device by the driver's handle, by its default memory pool, or by an address in its pool.
 *
 * No lock is taken. The result of a search by address is valid while the block at that address
 * exists. */
#pragma once

#include "device/state.h"

/* Finds the visible devices. Called at the start. Returns false if CUDA is not initialised. The
 * caller holds spw_locks.process. */
bool spw_device_find_all(struct spw_driver *driver);

/* Returns the device with this handle of the driver; NULL if there is none. */
struct spw_device *spw_device_of(CUdevice handle);

/* The slow path of spw_device_default_pool: asks the driver. */
CUmemoryPool spw_device_ask_pool(struct spw_device *device);

/* Returns the driver's default memory pool of a device; NULL if it has none. The driver is asked at
 * first use of the device. Asking at the start for every visible device would be expensive: to make
 * the pool, the driver reserves addresses for twice the device's memory (cuda-python#2458). */
static inline CUmemoryPool spw_device_default_pool(struct spw_device *device)
{
    return SPW_LIKELY(atomic_load_explicit(&device->default_pool_asked, memory_order_acquire))
               ? atomic_load_explicit(&device->default_pool, memory_order_relaxed)
               : spw_device_ask_pool(device);
}

/* Returns the device that has this default memory pool; NULL if it is not a default pool. Devices
 * that are already in use are compared first. The driver is asked about the other devices only if
 * none of these has the pool. */
struct spw_device *spw_device_of_pool(CUmemoryPool pool);

/* Returns the pool of a device; NULL if it is not open. */
static inline struct spw_pool *spw_device_opened(struct spw_device *device)
{
    return atomic_load_explicit(&device->pool, memory_order_acquire);
}

/* Returns the device whose pool contains an address, and the pool in *ret_pool. NULL if no pool
 * contains it. */
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
