#include "track/device.h"

#include "common/lock.h"
#include "common/log.h"
#include "track/contexts.h"

static void note_context(struct spw_pool *pool, void *vm, CUcontext context, bool peer)
{
    spw_pool_lock(pool);
    spw_track_ops.note_context(vm, context, peer);
    spw_pool_unlock(pool);
}

/* Tells the backend of a device's pool the contexts of device `ordinal`. */
static void note_contexts(const struct spw_device *device, struct spw_pool *pool, void *vm,
                          int ordinal)
{
    CUcontext context;
    size_t cursor = 0;

    while ((context = spw_track_contexts_next(ordinal, &cursor)) != NULL) {
        note_context(pool, vm, context, ordinal != device->ordinal);
    }
}

/* Tells the backend of a new pool the contexts and access rights from before it was opened. */
static void replay(struct spw_device *device, struct spw_pool *pool, void *vm)
{
    note_contexts(device, pool, vm, device->ordinal);
    for (int i = 0; i < spw_process.device_count; i++) {
        uint8_t access = atomic_load(&device->access[i]);

        if (access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            note_contexts(device, pool, vm, i);
            (void)spw_track_ops.grant(vm, spw_process.devices[i].ordinal, access);
        }
    }
}

struct spw_pool *spw_track_device_open(struct spw_device *device)
{
    struct spw_pool *pool = NULL;
    size_t cursor = 0;
    struct spw_migrate *tier;
    enum spw_err err;
    void *vm;

    if (atomic_load(&device->failed)) {
        return NULL;
    }
    spw_lock(&spw_locks.process);
    pool = spw_track_device_opened(device);
    if (pool == NULL && !atomic_load(&device->failed)) {
        err = spw_track_ops.open(device, spw_track_contexts_next(device->ordinal, &cursor), &pool,
                                 &vm, &tier);
        if (err == SPW_OK) {
            replay(device, pool, vm);
            device->vm = vm;
            device->tier = tier;
            atomic_store_explicit(&device->pool, pool, memory_order_release);
        } else {
            spw_log(SPW_LOG_ERROR, "device %d: no pool (%s): the driver serves its memory",
                    device->ordinal, spw_err_name(err));
            atomic_store(&device->failed, true);
        }
    }
    spw_unlock(&spw_locks.process);
    return pool;
}

void spw_track_device_check(const struct spw_device *device, struct spw_pool *pool)
{
    const char *broken = spw_pool_check(pool);

    if (broken != NULL) {
        spw_say("SPILLWAY_CHECK: the pool of device %d is broken: %s", device->ordinal, broken);
    }
}

void spw_track_device_close(struct spw_device *device, enum spw_closing closing)
{
    struct spw_pool *pool;

    spw_lock(&spw_locks.process);
    pool = atomic_exchange(&device->pool, NULL);
    if (pool != NULL) {
        spw_migrate_destroy(device->tier);
        spw_track_ops.close(pool, device->vm, closing);
        device->vm = NULL;
        device->tier = NULL;
    }
    spw_unlock(&spw_locks.process);
}

void spw_track_device_retire_stream(const struct spw_stream *stream)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_retire_stream(pool, stream);
        }
    }
}

/* True when contexts of device `ordinal` may use memory of `device`. */
static bool is_used_from(const struct spw_device *device, int ordinal)
{
    return device->ordinal == ordinal ||
           atomic_load(&device->access[ordinal]) != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

void spw_track_device_note_context(struct spw_device *device, CUcontext context)
{
    spw_lock(&spw_locks.process);
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_device *owner = &spw_process.devices[i];
        struct spw_pool *pool = spw_track_device_opened(owner);

        if (pool != NULL && is_used_from(owner, device->ordinal)) {
            note_context(pool, owner->vm, context, owner != device);
        }
    }
    spw_unlock(&spw_locks.process);
}

void spw_track_device_forget_context(CUcontext context)
{
    spw_lock(&spw_locks.process);
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_lock(pool);
            spw_track_ops.forget_context(spw_process.devices[i].vm, context);
            spw_pool_unlock(pool);
        }
    }
    spw_unlock(&spw_locks.process);
}

CUresult spw_track_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access)
{
    enum spw_err err = SPW_OK;
    struct spw_pool *pool;
    bool changed = false;

    atomic_store(&device->access[accessor], (uint8_t)access);
    spw_lock(&spw_locks.process);
    pool = spw_track_device_opened(device);
    if (pool != NULL) {
        /* Contexts stay known when access is taken away, since their work may not have ended. */
        note_contexts(device, pool, device->vm, accessor);
        spw_pool_lock(pool);
        changed = spw_track_ops.grant(device->vm, accessor, access);
        spw_pool_unlock(pool);
    }
    if (changed) {
        err = spw_pool_refresh_access(pool);
    }
    spw_unlock(&spw_locks.process);
    return (CUresult)spw_err_to_driver(err);
}
