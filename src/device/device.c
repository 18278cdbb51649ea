#include "device/device.h"

#include <stdlib.h>

#include "device/contexts.h"
#include "device/lease.h"
#include "device/make.h"
#include "system/lock.h"
#include "system/log.h"
#include "system/uncancelled.h"

static void note_context(struct spw_pool *pool, struct spw_backend *backend, CUcontext context,
                         bool peer)
{
    spw_pool_lock(pool);
    spw_backend_note_context(backend, context, peer);
    spw_pool_unlock(pool);
}

/* Passes the contexts of device `ordinal` to the backend of a device's pool. */
static void note_contexts(const struct spw_device *device, struct spw_pool *pool,
                          struct spw_backend *backend, int ordinal)
{
    CUcontext context;
    size_t cursor = 0;

    while ((context = spw_device_contexts_next(ordinal, &cursor)) != NULL) {
        note_context(pool, backend, context, ordinal != device->ordinal);
    }
}

/* Passes the contexts and access rights to the backend of a new pool. They were recorded before the
 * pool was opened. */
static void replay(struct spw_device *device, struct spw_pool *pool, struct spw_backend *backend)
{
    note_contexts(device, pool, backend, device->ordinal);
    for (int i = 0; i < spw_device_count(); i++) {
        uint8_t access = atomic_load(&device->access[i]);

        if (access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            note_contexts(device, pool, backend, i);
            (void)spw_backend_grant(backend, spw_device_at(i)->ordinal, access);
        }
    }
}

/* ---- opening ---- */

/* Returns true if a device other than `ordinal` has a context or a pool. */
static bool is_other_used(int ordinal)
{
    for (int i = 0; i < spw_device_count(); i++) {
        if (i != ordinal &&
            (spw_device_opened(spw_device_at(i)) != NULL || spw_device_contexts_count(i) > 0)) {
            return true;
        }
    }
    return false;
}

/* Records that a device is used. When a second device is used, copies are examined from then on:
 * they may go between devices, or use the memory of one device on a stream of the other. Caller
 * holds spw_locks.process. */
static void note_used(int ordinal)
{
    if (!atomic_load(&spw_devices.uses_several) && is_other_used(ordinal)) {
        atomic_store(&spw_devices.uses_several, true);
        atomic_fetch_add(&spw_devices.looked_at, 1);
    }
}

struct spw_pool *spw_device_open(struct spw_device *device)
{
    SPW_UNCANCELLED;
    struct spw_pool *pool = NULL;
    size_t cursor = 0;
    struct spw_migrate *tier;
    struct spw_backend *backend;
    enum spw_err err;

    if (atomic_load(&device->failed)) {
        return NULL;
    }
    (void)spw_device_sweep();
    spw_lock(&spw_locks.process);
    pool = spw_device_opened(device);
    if (pool == NULL && !atomic_load(&device->failed)) {
        err = spw_device_make(device, spw_device_contexts_next(device->ordinal, &cursor), &pool,
                              &backend, &tier);
        if (err == SPW_OK) {
            replay(device, pool, backend);
            note_used(device->ordinal);
            atomic_store(&device->backend, backend);
            atomic_store(&device->tier, tier);
            atomic_store_explicit(&device->pool, pool, memory_order_release);
        } else {
            spw_log(SPW_LOG_ERROR, "device %d: no pool (%s): the driver serves its memory",
                    device->ordinal, spw_err_name(err));
            atomic_store(&device->failed, true);
        }
    }
    spw_unlock(&spw_locks.process);
    if (pool != NULL) {
        spw_process_ops.opened();
    }
    return pool;
}

void spw_device_check(const struct spw_device *device, struct spw_pool *pool)
{
    bool alone = atomic_load(&device->closing) == 0;
    const char *broken = spw_pool_check(pool);

    /* The counters cover all pools of the device, but the invariants cover only one. */
    if (broken != NULL && alone && atomic_load(&device->closing) == 0 &&
        atomic_load(&device->pool) == pool) {
        spw_log_always("SPILLWAY_CHECK: the pool of device %d is broken: %s", device->ordinal,
                       broken);
    }
}

/* ---- closing ---- */

/* The longest wait for leases that may use a closed pool. */
enum { AWAIT_NS = 10 * 1000 * 1000 };

/* A closed pool, with its backend and tier. */
struct spw_closed_pool {
    struct spw_closed_pool *next;
    struct spw_device *device;
    struct spw_pool *pool;
    struct spw_backend *backend;
    struct spw_migrate *tier;
    uint64_t epoch; /* the epoch; earlier calls may use the pool. 0: the end of these calls cannot
                       be observed */
};

/* Removes a pool from spw_devices.ending. Caller holds spw_locks.process. */
static void end_ending(struct spw_closed_pool *closed)
{
    struct spw_closed_pool **link = &spw_devices.ending;

    while (*link != closed) {
        link = &(*link)->next;
    }
    *link = closed->next;
    closed->next = NULL;
}

/* Makes the pool of a device unreachable for new calls. With `unless_used`, does so only if no
 * context of the device is known. A thread that gets to know a context later finds no pool. Returns
 * false if there was no pool, or if the pool stays open. */
static bool take_out(struct spw_device *device, bool unless_used,
                     struct spw_closed_pool *ret_closed)
{
    *ret_closed = (struct spw_closed_pool){.device = device};
    spw_lock(&spw_locks.process);
    if (!unless_used || spw_device_contexts_count(device->ordinal) == 0) {
        ret_closed->pool = atomic_exchange(&device->pool, NULL);
        ret_closed->tier = atomic_exchange(&device->tier, NULL);
        ret_closed->backend = atomic_exchange(&device->backend, NULL);
    }
    if (ret_closed->pool != NULL) {
        atomic_fetch_add(&device->closing, 1);
        spw_pool_shut(ret_closed->pool);
        ret_closed->next = spw_devices.ending;
        spw_devices.ending = ret_closed;
    }
    spw_unlock(&spw_locks.process);
    return ret_closed->pool != NULL;
}

/* Releases all contexts of a closed pool, with their events and memory. */
static void forget_contexts(const struct spw_closed_pool *closed)
{
    spw_pool_forget_context(closed->pool, NULL);
    spw_pool_lock(closed->pool);
    spw_backend_forget_contexts(closed->backend);
    spw_pool_unlock(closed->pool);
}

/* Destroys a closed pool. The device may already have a new pool that uses the same accounts; these
 * change under the new pool's lock. Caller holds spw_locks.process. */
static void destroy(const struct spw_closed_pool *closed, enum spw_closing closing)
{
    struct spw_pool *newer = spw_device_opened(closed->device);

    if (closing == SPW_CLOSING_CONTEXTS_GONE) {
        spw_pool_forget_context(closed->pool, NULL);
    }
    if (newer != NULL) {
        spw_pool_lock(newer);
    }
    spw_migrate_destroy(closed->tier);
    if (closing == SPW_CLOSING_FORKED) {
        spw_pool_abandon(closed->pool);
    } else {
        spw_pool_destroy(closed->pool);
    }
    spw_backend_destroy(closed->backend, closing == SPW_CLOSING_ORDERLY);
    if (newer != NULL) {
        spw_pool_unlock(newer);
    }
    atomic_fetch_sub(&closed->device->closing, 1);
}

/* Keeps a closed pool until no call uses it any more. Releases the pool's contexts and their events
 * now. If there is no memory for the record, the pool is never destroyed. */
static void keep(const struct spw_closed_pool *closed)
{
    struct spw_closed_pool *kept = malloc(sizeof(*kept));

    forget_contexts(closed);
    if (kept != NULL) {
        *kept = *closed;
        kept->next = spw_devices.in_use;
        spw_devices.in_use = kept;
    }
}

bool spw_device_sweep(void)
{
    SPW_UNCANCELLED;
    struct spw_closed_pool **link = &spw_devices.in_use, *closed;
    bool any = false;

    spw_lock(&spw_locks.process);
    while ((closed = *link) != NULL) {
        if (closed->epoch == 0 || !spw_device_lease_ended(closed->epoch, /* except_own */ false)) {
            link = &closed->next;
            continue;
        }
        *link = closed->next;
        destroy(closed, SPW_CLOSING_CONTEXTS_GONE);
        free(closed);
        any = true;
    }
    spw_unlock(&spw_locks.process);
    return any;
}

bool spw_device_close_unused(struct spw_device *device, enum spw_closing closing)
{
    SPW_UNCANCELLED;
    struct spw_closed_pool closed;
    bool ended;

    if (!take_out(device, /* unless_used */ true, &closed)) {
        return spw_device_opened(device) == NULL;
    }
    closed.epoch = spw_device_lease_renew();
    ended =
        closed.epoch != 0 && spw_device_lease_await(closed.epoch, /* except_own */ true, AWAIT_NS);
    spw_lock(&spw_locks.process);
    end_ending(&closed);
    if (ended) {
        destroy(&closed, closing);
    } else {
        keep(&closed);
    }
    spw_unlock(&spw_locks.process);
    return true;
}

void spw_device_abandon(struct spw_device *device)
{
    struct spw_closed_pool closed;

    if (take_out(device, /* unless_used */ false, &closed)) {
        spw_lock(&spw_locks.process);
        end_ending(&closed);
        destroy(&closed, SPW_CLOSING_FORKED);
        spw_unlock(&spw_locks.process);
    }
    spw_devices.in_use = spw_devices.ending = NULL; /* their records belong to the parent */
}

/* ---- streams and contexts ---- */

void spw_device_retire_stream(const struct spw_stream *stream)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL) {
            spw_pool_retire_stream(pool, stream);
        }
    }
}

/* Returns true if contexts of device `ordinal` may use memory of `device`. */
static bool is_used_from(const struct spw_device *device, int ordinal)
{
    return device->ordinal == ordinal ||
           atomic_load(&device->access[ordinal]) != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

void spw_device_note_context(const struct spw_device *device, CUcontext context)
{
    note_used(device->ordinal);
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *owner = spw_device_at(i);
        struct spw_pool *pool = spw_device_opened(owner);

        if (pool != NULL && is_used_from(owner, device->ordinal)) {
            note_context(pool, owner->backend, context, owner != device);
        }
    }
}

void spw_device_add_user(const struct spw_device *owner, struct spw_pool *pool, CUcontext context)
{
    note_context(pool, owner->backend, context, /* peer */ true);
}

void spw_device_add_users(const struct spw_device *owner, struct spw_pool *pool)
{
    /* Under the lock, so that a context cannot be added after it was removed. */
    spw_lock(&spw_locks.process);
    for (int i = 0; i < spw_device_count(); i++) {
        note_contexts(owner, pool, owner->backend, i);
    }
    spw_unlock(&spw_locks.process);
}

void spw_device_end_context(CUcontext context)
{
    spw_lock(&spw_locks.process);
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL) {
            spw_pool_lock(pool);
            spw_backend_end_context(spw_device_at(i)->backend, context);
            spw_pool_unlock(pool);
        }
    }
    spw_unlock(&spw_locks.process);
}

void spw_device_forget_context(CUcontext context)
{
    spw_lock(&spw_locks.process);
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL) {
            spw_pool_lock(pool);
            spw_backend_forget_context(spw_device_at(i)->backend, context);
            spw_pool_unlock(pool);
        }
    }
    for (struct spw_closed_pool *closed = spw_devices.ending; closed != NULL;
         closed = closed->next) {
        spw_pool_forget_context(closed->pool, context);
        spw_pool_lock(closed->pool);
        spw_backend_forget_context(closed->backend, context);
        spw_pool_unlock(closed->pool);
    }
    spw_unlock(&spw_locks.process);
}

/* Changes the access of a device to the pool's memory, both to memory that is mapped now and to
 * memory that is mapped later. If the driver refuses, memory that is mapped later gets the old
 * access. Caller holds spw_locks.process. */
static enum spw_err regrant(struct spw_device *device, struct spw_pool *pool, int accessor,
                            CUmemAccess_flags access)
{
    CUmemAccess_flags before = atomic_load(&device->access[accessor]);
    enum spw_err err;
    bool changed;

    /* Contexts stay known when their access ends, because their work may not be complete. */
    note_contexts(device, pool, device->backend, accessor);
    spw_pool_lock(pool);
    changed = spw_backend_grant(device->backend, accessor, access);
    spw_pool_unlock(pool);
    err = changed ? spw_pool_refresh_access(pool) : SPW_OK;
    if (err != SPW_OK) {
        spw_pool_lock(pool);
        (void)spw_backend_grant(device->backend, accessor, before);
        spw_pool_unlock(pool);
    }
    return err;
}

enum spw_err spw_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access)
{
    struct spw_pool *pool = spw_device_opened(device);
    enum spw_err err = pool != NULL ? regrant(device, pool, accessor, access) : SPW_OK;

    if (err == SPW_OK) {
        atomic_store(&device->access[accessor], (uint8_t)access);
    }
    return err;
}
