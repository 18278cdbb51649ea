/* The devices: pool, backend and host tier of each, its limits, its contexts, who may use its
 * memory. It does not know the handlers of calls.
 *
 *   access        the other devices that may access a device's memory
 *   contexts      the contexts that exist, each with its device
 *   device        opens a device's pool at first use, and closes it
 *   host_budget   the host memory that the devices may use
 *   lease         keeps a pool alive while a call uses it
 *   limits        how much memory a pool may use, on the device and on the host
 *   lookup        finds a device by handle, by memory pool, or by address
 *   make          makes a pool with its backend and its host tier
 *   moves         records moves
 *   one_memory    a device without memory of its own, and the one budget for device and host
 *   spill         the functions of the host tier that handlers call
 *   state         the struct of a device, and all devices
 *   tier          the host tier of a device, and whether blocks may move
 *
 * Locking: functions that open or close a pool, and those for access and contexts, take
 * spw_locks.process. A caller that looks up or uses a pool must hold a lease (lease.h) or
 * spw_locks.process. Otherwise another thread may close the pool at any time, by destroying the
 * last context of its device. */
#pragma once

#include "device/lookup.h"

/* The slow path of spw_device_pool: opens the pool. */
struct spw_pool *spw_device_open(struct spw_device *device);

/* Returns the pool of a device, and opens it at first use. Returns NULL if no pool can be made; the
 * driver then serves the call. */
static inline struct spw_pool *spw_device_pool(struct spw_device *device)
{
    struct spw_pool *pool = atomic_load_explicit(&device->pool, memory_order_acquire);

    return SPW_LIKELY(pool != NULL) ? pool : spw_device_open(device);
}

/* Checks the invariants of a pool, and reports the first one that is broken (SPILLWAY_CHECK). */
void spw_device_check(const struct spw_device *device, struct spw_pool *pool);

/* Closes the pool if no context of the device is known. All blocks of the pool are freed, and the
 * next use of the device opens a new pool. The closed pool is destroyed when no call uses it any
 * more. Returns false if the pool stays open. Caller holds no lock. */
bool spw_device_close_unused(struct spw_device *device, enum spw_closing closing);

/* Destroys the closed pools that no call uses any more. Returns true if there were any. Caller
 * holds no lock. */
bool spw_device_sweep(void);

/* In a child after fork: forgets the pool, which is the parent's. */
void spw_device_abandon(struct spw_device *device);

/* Make the pool also wait for the work of `context` (add_user) or of every known context
 * (add_users), because this work now uses the pool's memory. The caller holds a lease. */
void spw_device_add_user(const struct spw_device *owner, struct spw_pool *pool, CUcontext context);
void spw_device_add_users(const struct spw_device *owner, struct spw_pool *pool);

/* Keeps the order of memory that was freed on a stream. Called before the stream is destroyed. */
void spw_device_retire_stream(const struct spw_stream *stream);

/* The first adds a new context to every pool whose memory the context may use. The caller holds
 * spw_locks.process. The second removes a context from the pools before the context is
 * destroyed. */
void spw_device_note_context(const struct spw_device *device, CUcontext context);
void spw_device_forget_context(CUcontext context);

/* Stops all pools from beginning copies in a context that is about to be destroyed. Must be called
 * before the wait for the context's work, so that the wait covers all copies. */
void spw_device_end_context(CUcontext context);

/* Sets the access of device `accessor` to the device's memory, for device/access.c. The access also
 * applies to pools that are opened later. After an error the access is unchanged, but memory that
 * is already mapped may allow more access than that. Caller holds spw_locks.process. */
enum spw_err spw_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access);
