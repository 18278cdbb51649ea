/* The devices: pool, backend and host tier of each, its limits, its contexts, who may use its
 * memory. It does not know the handlers of calls.
 *
 *   access        the other devices that may reach a device's memory
 *   contexts      the contexts that exist, each with its device
 *   device        opens a device's pool at first use, and closes it
 *   host_budget   the host memory that the devices may take
 *   lease         keeps a pool alive while a call uses it
 *   limits        how much memory a pool may use, on the device and on the host
 *   lookup        finds a device by handle, by memory pool, or by address
 *   make          makes a pool with its backend and its host tier
 *   moves         records moves
 *   spill         the host tier as the handlers use it
 *   state         the struct of a device, and all devices
 *   tier          the host tier of a device, and whether blocks may move
 *
 * Locking: opening, closing, access and contexts take spw_locks.process. A pool is looked up and
 * used under a lease (lease.h) or under spw_locks.process: otherwise another thread may close it at
 * any time, by destroying the last context of its device. */
#pragma once

#include "device/lookup.h"

/* The slow path of spw_device_pool: opens the pool. */
struct spw_pool *spw_device_open(struct spw_device *device);

/* The pool of a device, opened at first use. NULL when no pool can be made; then the driver serves
 * the call. */
static inline struct spw_pool *spw_device_pool(struct spw_device *device)
{
    struct spw_pool *pool = atomic_load_explicit(&device->pool, memory_order_acquire);

    return SPW_LIKELY(pool != NULL) ? pool : spw_device_open(device);
}

/* Checks the invariants of a pool and reports the first that is broken (SPILLWAY_CHECK). */
void spw_device_check(const struct spw_device *device, struct spw_pool *pool);

/* Closes the pool if no context of the device is known. Every block in it is freed, and the next
 * use opens a new pool. Calls that use the closed pool may finish; then it is destroyed. False when
 * the pool stays open. Caller holds no lock. */
bool spw_device_close_unused(struct spw_device *device, enum spw_closing closing);

/* Destroys closed pools that no call uses any more. True when there were any. Caller holds no lock.
 */
bool spw_device_sweep(void);

/* In a child after fork: forgets the pool, which is the parent's. */
void spw_device_abandon(struct spw_device *device);

/* From now on the pool also waits for work of `context` (add_user), or of every known context
 * (add_users), since that work uses the pool's memory. The caller holds a lease. */
void spw_device_add_user(const struct spw_device *owner, struct spw_pool *pool, CUcontext context);
void spw_device_add_users(const struct spw_device *owner, struct spw_pool *pool);

/* Called before a stream is destroyed: keeps the order of memory that was freed on the stream. */
void spw_device_retire_stream(const struct spw_stream *stream);

/* Add a context that was seen for the first time to every pool whose memory it may use, or remove
 * it before it is destroyed. To add it, the caller holds spw_locks.process. */
void spw_device_note_context(const struct spw_device *device, CUcontext context);
void spw_device_forget_context(CUcontext context);

/* Lets no pool begin a copy in a context that is about to be destroyed. To be called before the
 * wait for the context's work, so that the wait covers all copies. */
void spw_device_end_context(CUcontext context);

/* Sets the access of device `accessor` to the device's memory, also for pools opened later: for
 * device/access.c. After an error the access is as before, but memory that is already mapped may
 * keep more access. Caller holds spw_locks.process. */
enum spw_err spw_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access);
