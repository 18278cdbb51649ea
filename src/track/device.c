#include "track/device.h"

#include "common/log.h"
#include "track/stream.h"
#include "track/arguments.h"

struct spw_device *spw_track_device_of(CUdevice handle)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        if (spw_process.devices[i].handle == handle) {
            return &spw_process.devices[i];
        }
    }
    return NULL;
}

struct spw_device *spw_track_device_of_pool(CUmemoryPool pool)
{
    for (int i = 0; pool != NULL && i < spw_process.device_count; i++) {
        if (spw_process.devices[i].default_pool == pool) {
            return &spw_process.devices[i];
        }
    }
    return NULL;
}

static void note_context(struct spw_pool *pool, void *vm, CUcontext context, bool peer)
{
    spw_pool_lock(pool);
    spw_seam.note_context(vm, context, peer);
    spw_pool_unlock(pool);
}

/* Tells the seam of a device's pool the contexts of another, or of its own. */
static void note_contexts(const struct spw_device *device, struct spw_pool *pool, void *vm,
                          int ordinal)
{
    CUcontext context;
    size_t cursor = 0;

    while ((context = spw_track_stream_next_context(ordinal, &cursor)) != NULL) {
        note_context(pool, vm, context, ordinal != device->ordinal);
    }
}

/* Tells a new pool's seam what was seen and granted before it was there. */
static void replay(struct spw_device *device, struct spw_pool *pool, void *vm)
{
    note_contexts(device, pool, vm, device->ordinal);
    for (int i = 0; i < spw_process.device_count; i++) {
        uint8_t access = atomic_load(&device->access[i]);

        if (access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            note_contexts(device, pool, vm, i);
            (void)spw_seam.grant(vm, spw_process.devices[i].ordinal, access);
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
    pthread_mutex_lock(&spw_process.lock);
    pool = spw_track_device_opened(device);
    if (pool == NULL && !atomic_load(&device->failed)) {
        err = spw_seam.open(device, spw_track_stream_next_context(device->ordinal, &cursor), &pool,
                            &vm, &tier);
        if (err == SPW_OK) {
            replay(device, pool, vm);
            device->vm = vm;
            device->tier = tier;
            atomic_store_explicit(&device->pool, pool, memory_order_release);
        } else {
            spw_log(SPW_LOG_ERROR, "device %d: no pool (%s): its memory is left to the driver",
                    device->ordinal, spw_err_name(err));
            atomic_store(&device->failed, true);
        }
    }
    pthread_mutex_unlock(&spw_process.lock);
    return pool;
}

void spw_track_device_check(const struct spw_device *device, struct spw_pool *pool)
{
    const char *broken = spw_pool_check(pool);

    if (broken != NULL) {
        spw_log_always("SPILLWAY_CHECK: the pool of device %d is broken: %s", device->ordinal,
                       broken);
    }
}

void spw_track_device_close(struct spw_device *device, enum spw_closing closing)
{
    struct spw_pool *pool;

    pthread_mutex_lock(&spw_process.lock);
    pool = atomic_exchange(&device->pool, NULL);
    if (pool != NULL) {
        spw_migrate_destroy(device->tier);
        spw_seam.close(pool, device->vm, closing);
        device->vm = NULL;
        device->tier = NULL;
    }
    pthread_mutex_unlock(&spw_process.lock);
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

/* Whether memory of `device` is used from contexts of device `ordinal`. */
static bool is_used_from(const struct spw_device *device, int ordinal)
{
    return device->ordinal == ordinal ||
           atomic_load(&device->access[ordinal]) != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

void spw_track_device_note_context(struct spw_device *device, CUcontext context)
{
    pthread_mutex_lock(&spw_process.lock);
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_device *owner = &spw_process.devices[i];
        struct spw_pool *pool = spw_track_device_opened(owner);

        if (pool != NULL && is_used_from(owner, device->ordinal)) {
            note_context(pool, owner->vm, context, owner != device);
        }
    }
    pthread_mutex_unlock(&spw_process.lock);
}

void spw_track_device_forget_context(CUcontext context)
{
    spw_track_arguments_forget_layouts();
    pthread_mutex_lock(&spw_process.lock);
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_lock(pool);
            spw_seam.forget_context(spw_process.devices[i].vm, context);
            spw_pool_unlock(pool);
        }
    }
    pthread_mutex_unlock(&spw_process.lock);
}

CUresult spw_track_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access)
{
    enum spw_err err = SPW_OK;
    struct spw_pool *pool;
    bool changed = false;

    atomic_store(&device->access[accessor], (uint8_t)access);
    pthread_mutex_lock(&spw_process.lock);
    pool = spw_track_device_opened(device);
    if (pool != NULL) {
        /* They stay when access is taken away: what was submitted may be under way still. */
        note_contexts(device, pool, device->vm, accessor);
        spw_pool_lock(pool);
        changed = spw_seam.grant(device->vm, accessor, access);
        spw_pool_unlock(pool);
    }
    if (changed) {
        err = spw_pool_refresh_access(pool);
    }
    pthread_mutex_unlock(&spw_process.lock);
    return (CUresult)spw_err_to_driver(err);
}
