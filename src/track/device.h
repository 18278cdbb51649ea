/* The pools of the devices: made at first use, found by address, told about streams and contexts.
 *
 * Locking: opening, closing, access and contexts take spw_process.lock; finding takes none. A pool
 * is looked for and used under a lease (see lease.h) or under spw_process.lock: another thread may
 * close it at any time, as it destroys the last context of a device that this one does not use. */
#pragma once

#include "track/process.h"

/* The device of a driver handle; NULL when there is none. */
struct spw_device *spw_track_device_of(CUdevice handle);

/* The device whose default memory pool this is; NULL when it is no default pool. */
struct spw_device *spw_track_device_of_pool(CUmemoryPool pool);

/* The slow half of spw_track_device_pool. */
struct spw_pool *spw_track_device_open(struct spw_device *device);

/* The pool of a device, opened if need be. NULL when there can be none: the call passes then. */
static inline struct spw_pool *spw_track_device_pool(struct spw_device *device)
{
    struct spw_pool *pool = atomic_load_explicit(&device->pool, memory_order_acquire);

    return SPW_LIKELY(pool != NULL) ? pool : spw_track_device_open(device);
}

/* The pool of a device if it is open, else NULL. */
static inline struct spw_pool *spw_track_device_opened(struct spw_device *device)
{
    return atomic_load_explicit(&device->pool, memory_order_acquire);
}

/* The device in whose pool `address` lies, and the pool; NULL when it is not ours. */
static inline struct spw_device *spw_track_device_owner(CUdeviceptr address,
                                                        struct spw_pool **ret_pool)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL && spw_pool_owns(pool, address)) {
            *ret_pool = pool;
            return &spw_process.devices[i];
        }
    }
    return NULL;
}

/* With SPILLWAY_CHECK: says which invariant of the pool is broken, if one is. */
void spw_track_device_check(const struct spw_device *device, struct spw_pool *pool);

/* Gives back the pool with everything in it if no context of the device is known; the next use
 * opens another. Calls that use it may go on using it: it is destroyed after them. False when it is
 * open still. Caller holds no lock. */
bool spw_device_close_unused(struct spw_device *device, enum spw_closing closing);

/* Destroys closed pools that nobody uses any more. True when there were any. Caller holds no lock.
 */
bool spw_device_sweep(void);

/* In a child after fork: forgets the pool, which is the parent's. */
void spw_device_abandon(struct spw_device *device);

/* A stream is about to be destroyed: every pool settles what was freed on it. */
void spw_track_device_retire_stream(const struct spw_stream *stream);

/* A context of the device was seen for the first time, or is about to go: told to every pool whose
 * memory is used from it. For the first, the caller holds spw_process.lock. */
void spw_track_device_note_context(const struct spw_device *device, CUcontext context);
void spw_track_device_forget_context(CUcontext context);

/* Sets what device `accessor` may do with the device's memory, now and for later pools. */
CUresult spw_track_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access);
