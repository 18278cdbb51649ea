#include "track/stream.h"

#include "track/capture.h"
#include "track/device.h"
#include "track/process.h"
#include "common/map.h"

#include <pthread.h>
#include <stdlib.h>

/* The default streams' handles, which are no pointers. */
#define LEGACY     ((uintptr_t)CU_STREAM_LEGACY)
#define PER_THREAD ((uintptr_t)CU_STREAM_PER_THREAD)

/* Both tables hold struct spw_stream_info: created streams by their handle, and the legacy stream
 * of every context seen by the context. The threads' own streams are in neither, for no other
 * thread can name them. `generation` rises when something is forgotten: what threads keep is stale
 * then. The table of contexts changes only under spw_process.lock as well. */
static struct {
    pthread_mutex_t lock;
    struct spw_map created;
    struct spw_map contexts;
    _Atomic uint64_t generation;
    _Atomic uint64_t next_id; /* where the driver is too old to number streams */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1, .next_id = UINT64_C(1) << 63};

enum { RECENT_BITS = 3 };

/* The streams this thread used last, by a hash of handle and context. */
static _Thread_local struct recent {
    uint64_t generation;
    uintptr_t key;
    CUcontext context; /* of a default stream, NULL otherwise */
    struct spw_stream_info info;
} recent[1 << RECENT_BITS] __attribute__((tls_model("initial-exec")));

static struct recent *recent_slot(uintptr_t key, CUcontext context)
{
    uint64_t hash = ((uint64_t)key ^ (uint64_t)(uintptr_t)context) * 0x9e3779b97f4a7c15u;

    return &recent[hash >> (64 - RECENT_BITS)];
}

static bool look_up(const struct spw_map *map, uint64_t key, struct spw_stream_info *ret_info)
{
    const struct spw_stream_info *known;

    pthread_mutex_lock(&table.lock);
    known = spw_map_get(map, key);
    if (known != NULL) {
        *ret_info = *known;
    }
    pthread_mutex_unlock(&table.lock);
    return known != NULL;
}

static bool remember(struct spw_map *map, uint64_t key, const struct spw_stream_info *info)
{
    struct spw_stream_info *copy = malloc(sizeof(*copy));
    bool done = false;

    if (copy == NULL) {
        return false;
    }
    *copy = *info;
    pthread_mutex_lock(&table.lock);
    /* Another thread may have been faster with the same answer. */
    if (spw_map_get(map, key) == NULL && spw_map_put(map, key, copy)) {
        copy = NULL;
        done = true;
    } else {
        done = spw_map_get(map, key) != NULL;
    }
    pthread_mutex_unlock(&table.lock);
    free(copy);
    return done;
}

/* The number of a stream, unique for the life of the process. Default streams: of the current
 * context. */
static bool number_of(struct spw_driver *driver, int ordinal, uintptr_t key, uint64_t *ret_id)
{
    unsigned long long id = 0;

    if (driver->cuStreamGetId == NULL) {
        *ret_id = atomic_fetch_add_explicit(&table.next_id, 1, memory_order_relaxed);
        return true;
    }
    if (SPW_DRIVER_CALL(driver, ordinal, cuStreamGetId, (CUstream)key, &id) != CUDA_SUCCESS) {
        return false;
    }
    *ret_id = id == SPW_STREAM_ALL ? UINT64_MAX : id; /* the pool keeps one number for itself */
    return true;
}

/* Asks the driver about the current context: its device and its legacy stream. */
static bool identify_current(struct spw_driver *driver, CUcontext context,
                             struct spw_stream_info *ret_info)
{
    const struct spw_device *device;
    CUdevice handle;
    uint64_t id;

    if (SPW_DRIVER_CALL(driver, -1, cuCtxGetDevice, &handle) != CUDA_SUCCESS) {
        return false;
    }
    device = spw_track_device_of(handle);
    if (device == NULL || !number_of(driver, device->ordinal, LEGACY, &id)) {
        return false;
    }
    *ret_info = (struct spw_stream_info){
        .stream = {.id = id, .handle = CU_STREAM_LEGACY, .context = context},
        .ordinal = device->ordinal,
    };
    return true;
}

/* The legacy stream of a context, which need not be current. */
static bool learn_context(CUcontext context, struct spw_stream_info *ret_info)
{
    struct spw_driver *driver = spw_track_driver();
    CUcontext popped;
    bool done;

    if (look_up(&table.contexts, (uintptr_t)context, ret_info)) {
        return true;
    }
    if (SPW_DRIVER_CALL(driver, -1, cuCtxPushCurrent_v2, context) != CUDA_SUCCESS) {
        return false;
    }
    done = identify_current(driver, context, ret_info);
    (void)SPW_DRIVER_CALL(driver, -1, cuCtxPopCurrent_v2, &popped);
    if (done) {
        spw_driver_count(driver, ret_info->ordinal, SPW_CALL_cuCtxPushCurrent_v2);
        spw_driver_count(driver, ret_info->ordinal, SPW_CALL_cuCtxGetDevice);
        spw_driver_count(driver, ret_info->ordinal, SPW_CALL_cuCtxPopCurrent_v2);
    }
    if (!done) {
        return false;
    }
    /* Whoever finds the context in the table relies on the pools' knowing it. */
    pthread_mutex_lock(&spw_process.lock);
    spw_track_device_note_context(&spw_process.devices[ret_info->ordinal], context);
    done = remember(&table.contexts, (uintptr_t)context, ret_info);
    pthread_mutex_unlock(&spw_process.lock);
    return done;
}

/* A stream that the program created. */
static bool learn_created(uintptr_t key, struct spw_stream_info *ret_info)
{
    struct spw_driver *driver = spw_track_driver();
    CUstream handle = (CUstream)key;
    CUcontext context = NULL;

    if (look_up(&table.created, key, ret_info)) {
        return true;
    }
    if (driver->cuStreamGetCtx == NULL ||
        SPW_DRIVER_CALL(driver, -1, cuStreamGetCtx, handle, &context) != CUDA_SUCCESS ||
        !learn_context(context, ret_info) ||
        !number_of(driver, ret_info->ordinal, key, &ret_info->stream.id)) {
        return false;
    }
    ret_info->stream.handle = handle;
    spw_driver_count(driver, ret_info->ordinal, SPW_CALL_cuStreamGetCtx);
    return remember(&table.created, key, ret_info);
}

/* The calling thread's own stream of the current context. */
static bool learn_own(CUcontext context, struct spw_stream_info *ret_info)
{
    if (!learn_context(context, ret_info) ||
        !number_of(spw_track_driver(), ret_info->ordinal, PER_THREAD, &ret_info->stream.id)) {
        return false;
    }
    ret_info->stream.handle = CU_STREAM_PER_THREAD;
    ret_info->stream.thread_bound = true;
    return true;
}

/* Not inlined, so that recall needs no stack. */
__attribute__((noinline)) static const struct spw_stream_info *
learn(struct recent *slot, uintptr_t key, CUcontext context, uint64_t generation)
{
    struct spw_stream_info info;
    bool known;

    if (key == LEGACY) {
        known = learn_context(context, &info);
    } else {
        known = key == PER_THREAD ? learn_own(context, &info) : learn_created(key, &info);
    }
    if (!known) {
        return NULL;
    }
    *slot = (struct recent){generation, key, context, info};
    return &slot->info;
}

static const struct spw_stream_info *recall(uintptr_t key, CUcontext context)
{
    uint64_t generation = atomic_load_explicit(&table.generation, memory_order_acquire);
    struct recent *slot = recent_slot(key, context);

    if (SPW_LIKELY(slot->generation == generation && slot->key == key &&
                   slot->context == context)) {
        return &slot->info;
    }
    return learn(slot, key, context, generation);
}

static const struct spw_stream_info *recall_default(uintptr_t key)
{
    struct spw_driver *driver = spw_track_driver();
    const struct spw_stream_info *info = NULL;
    CUcontext context = NULL;

    if (SPW_DRIVER_CALL(driver, -1, cuCtxGetCurrent, &context) == CUDA_SUCCESS && context != NULL) {
        info = recall(key, context);
    }
    if (info != NULL) {
        spw_driver_count(driver, info->ordinal, SPW_CALL_cuCtxGetCurrent);
    }
    return info;
}

const struct spw_stream_info *spw_track_stream_get(CUstream handle, bool per_thread)
{
    uintptr_t key = (uintptr_t)handle;

    if (key > PER_THREAD) {
        return recall(key, NULL);
    }
    return recall_default(key != 0 ? key : per_thread ? PER_THREAD : LEGACY);
}

const struct spw_stream_info *spw_track_stream_current(void)
{
    return recall_default(LEGACY);
}

int spw_track_stream_ordinal(CUcontext context)
{
    struct spw_stream_info info;

    return learn_context(context, &info) ? info.ordinal : -1;
}

/* Takes a stream out of its table and makes every thread forget it; NULL when it is not there. */
static struct spw_stream_info *forget(struct spw_map *map, uint64_t key)
{
    struct spw_stream_info *info = spw_map_take(map, key);

    if (info != NULL) {
        atomic_fetch_add_explicit(&table.generation, 1, memory_order_release);
    }
    return info;
}

static void bury(struct spw_stream_info *info, bool gone)
{
    if (info != NULL && !gone) {
        spw_track_capture_forget(&info->stream);
        spw_track_device_retire_stream(&info->stream);
    }
    free(info);
}

void spw_track_stream_retire(CUstream handle)
{
    struct spw_stream_info *info;

    pthread_mutex_lock(&table.lock);
    info = forget(&table.created, (uintptr_t)handle);
    pthread_mutex_unlock(&table.lock);
    bury(info, false);
}

/* A created stream of the context, taken out; NULL when none is left. */
static struct spw_stream_info *forget_one_of(CUcontext context)
{
    const struct spw_stream_info *info;
    size_t cursor = 0;

    while ((info = spw_map_next(&table.created, &cursor)) != NULL) {
        if (info->stream.context == context) {
            return forget(&table.created, (uintptr_t)info->stream.handle);
        }
    }
    return NULL;
}

void spw_track_stream_retire_context(CUcontext context, bool gone)
{
    struct spw_stream_info *info;

    do {
        pthread_mutex_lock(&table.lock);
        info = forget_one_of(context);
        pthread_mutex_unlock(&table.lock);
        bury(info, gone);
    } while (info != NULL);
    pthread_mutex_lock(&spw_process.lock);
    pthread_mutex_lock(&table.lock);
    info = forget(&table.contexts, (uintptr_t)context);
    pthread_mutex_unlock(&table.lock);
    pthread_mutex_unlock(&spw_process.lock);
    bury(info, gone);
}

CUcontext spw_track_stream_next_context(int ordinal, size_t *cursor)
{
    const struct spw_stream_info *info;
    CUcontext found = NULL;

    pthread_mutex_lock(&table.lock);
    while (found == NULL && (info = spw_map_next(&table.contexts, cursor)) != NULL) {
        found = info->ordinal == ordinal ? info->stream.context : NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

size_t spw_stream_contexts(int ordinal)
{
    const struct spw_stream_info *info;
    size_t cursor = 0, count = 0;

    while ((info = spw_map_next(&table.contexts, &cursor)) != NULL) {
        count += info->ordinal == ordinal;
    }
    return count;
}

void spw_track_stream_lock(void)
{
    pthread_mutex_lock(&table.lock);
}

void spw_track_stream_unlock(void)
{
    pthread_mutex_unlock(&table.lock);
}

void spw_track_stream_reset(void)
{
    pthread_mutex_lock(&table.lock);
    spw_map_clear(&table.created);
    spw_map_clear(&table.contexts);
    atomic_fetch_add_explicit(&table.generation, 1, memory_order_release);
    pthread_mutex_unlock(&table.lock);
}
