#include "program/stream.h"

#include "common/hash.h"
#include "device/device.h"
#include "process/process.h"
#include "program/state.h"
#include "system/lock.h"

#include <stdlib.h>

/* The handles of default streams, which are small numbers. */
#define LEGACY     ((uintptr_t)CU_STREAM_LEGACY)
#define PER_THREAD ((uintptr_t)CU_STREAM_PER_THREAD)

/* The first number of a stream that the driver does not number. */
#define OWN_IDS (UINT64_C(1) << 63)

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
    return &recent[spw_hash_word(key ^ (uintptr_t)context) >> (64 - RECENT_BITS)];
}

static bool look_up(uintptr_t key, struct spw_stream_info *ret_info)
{
    const struct spw_stream_info *known;

    spw_lock(&spw_locks.streams);
    known = spw_map_get(&spw_program.streams.created, key);
    if (known != NULL) {
        *ret_info = *known;
    }
    spw_unlock(&spw_locks.streams);
    return known != NULL;
}

static bool remember(uintptr_t key, const struct spw_stream_info *info)
{
    struct spw_stream_info *copy = malloc(sizeof(*copy));
    bool there;

    if (copy == NULL) {
        return false;
    }
    *copy = *info;
    spw_lock(&spw_locks.streams);
    /* Another thread may have been faster. */
    there = spw_map_get(&spw_program.streams.created, key) != NULL;
    if (!there && spw_map_put(&spw_program.streams.created, key, copy)) {
        there = true;
        copy = NULL;
    }
    spw_unlock(&spw_locks.streams);
    free(copy);
    return there;
}

/* A number for a stream, unique for the life of the process: the driver's or, if it gives none, our
 * own. The handle is valid: the caller has asked the driver about it. The handle of a default
 * stream means the stream of the current context. */
static uint64_t number_of(struct spw_driver *driver, int ordinal, uintptr_t key)
{
    unsigned long long id = 0;

    if (driver->cuStreamGetId == NULL ||
        SPW_DRIVER_CALL(driver, ordinal, cuStreamGetId, (CUstream)key, &id) != CUDA_SUCCESS) {
        return OWN_IDS +
               atomic_fetch_add_explicit(&spw_program.streams.numbered, 1, memory_order_relaxed);
    }
    return id == SPW_STREAM_ALL ? UINT64_MAX : id; /* the pool keeps one number for itself */
}

/* Asks the driver about the current context: its device and its legacy stream. */
static bool identify_current(struct spw_driver *driver, CUcontext context,
                             struct spw_stream_info *ret_info)
{
    const struct spw_device *device;
    CUdevice handle;

    if (SPW_DRIVER_CALL(driver, -1, cuCtxGetDevice, &handle) != CUDA_SUCCESS) {
        return false;
    }
    device = spw_device_of(handle);
    if (device == NULL) {
        return false;
    }
    *ret_info = (struct spw_stream_info){
        .stream = {.id = number_of(driver, device->ordinal, LEGACY),
                   .handle = CU_STREAM_LEGACY,
                   .context = context},
        .ordinal = device->ordinal,
    };
    return true;
}

/* The legacy stream of a context, which need not be current. */
static bool learn_context(CUcontext context, struct spw_stream_info *ret_info)
{
    struct spw_driver *driver = spw_process_driver();
    CUcontext popped;
    bool done;

    if (spw_device_contexts_find(context, ret_info)) {
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
    /* The pools must know a context before another thread finds it in the table. */
    spw_lock(&spw_locks.process);
    spw_device_note_context(spw_device_at(ret_info->ordinal), context);
    done = spw_device_contexts_add(ret_info) && spw_device_contexts_find(context, ret_info);
    spw_unlock(&spw_locks.process);
    return done;
}

/* A stream that the program created. */
static bool learn_created(uintptr_t key, struct spw_stream_info *ret_info)
{
    struct spw_driver *driver = spw_process_driver();
    CUstream handle = (CUstream)key;
    CUcontext context = NULL;

    if (look_up(key, ret_info)) {
        return true;
    }
    if (driver->cuStreamGetCtx == NULL ||
        SPW_DRIVER_CALL(driver, -1, cuStreamGetCtx, handle, &context) != CUDA_SUCCESS ||
        !learn_context(context, ret_info)) {
        return false;
    }
    ret_info->stream.id = number_of(driver, ret_info->ordinal, key);
    ret_info->stream.handle = handle;
    spw_driver_count(driver, ret_info->ordinal, SPW_CALL_cuStreamGetCtx);
    /* All threads use the table's entry: another thread may have given the stream another number of
     * our own. */
    return remember(key, ret_info) && look_up(key, ret_info);
}

/* The calling thread's own stream of the current context. */
static bool learn_own(CUcontext context, struct spw_stream_info *ret_info)
{
    if (!learn_context(context, ret_info)) {
        return false;
    }
    ret_info->stream.id = number_of(spw_process_driver(), ret_info->ordinal, PER_THREAD);
    ret_info->stream.handle = CU_STREAM_PER_THREAD;
    ret_info->stream.thread_bound = true;
    return true;
}

/* Not inlined, to keep the fast path in recall small. */
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
    uint64_t generation =
        atomic_load_explicit(&spw_program.streams.generation, memory_order_acquire);
    struct recent *slot = recent_slot(key, context);

    if (SPW_LIKELY(slot->generation == generation && slot->key == key &&
                   slot->context == context)) {
        return &slot->info;
    }
    return learn(slot, key, context, generation);
}

static const struct spw_stream_info *recall_default(uintptr_t key)
{
    struct spw_driver *driver = spw_process_driver();
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

const struct spw_stream_info *spw_program_stream_get(CUstream handle, bool per_thread)
{
    uintptr_t key = (uintptr_t)handle;

    if (key > PER_THREAD) {
        return recall(key, NULL);
    }
    return recall_default(key != 0 ? key : per_thread ? PER_THREAD : LEGACY);
}

const struct spw_stream_info *spw_program_stream_current(void)
{
    return recall_default(LEGACY);
}

int spw_program_stream_ordinal(CUcontext context)
{
    struct spw_stream_info info;

    return learn_context(context, &info) ? info.ordinal : -1;
}

/* Makes stale the entries that threads keep. */
static void age_recent(void)
{
    atomic_fetch_add_explicit(&spw_program.streams.generation, 1, memory_order_release);
}

/* Copies and frees an entry that was taken out of the table; false when there was none. */
static bool hand_over(struct spw_stream_info *info, struct spw_stream_info *ret_info)
{
    if (info == NULL) {
        return false;
    }
    age_recent();
    *ret_info = *info;
    free(info);
    return true;
}

bool spw_program_stream_forget(CUstream handle, struct spw_stream_info *ret_info)
{
    struct spw_stream_info *info;

    spw_lock(&spw_locks.streams);
    info = spw_map_take(&spw_program.streams.created, (uintptr_t)handle);
    spw_unlock(&spw_locks.streams);
    return hand_over(info, ret_info);
}

/* Takes out a context's created stream, from `cursor` on; NULL: none. Caller holds the lock. */
static struct spw_stream_info *take_one_of(CUcontext context, size_t *cursor)
{
    const struct spw_stream_info *info;

    while ((info = spw_map_next(&spw_program.streams.created, cursor)) != NULL) {
        if (info->stream.context == context) {
            --*cursor; /* another entry may move into its place */
            return spw_map_take(&spw_program.streams.created, (uintptr_t)info->stream.handle);
        }
    }
    return NULL;
}

bool spw_program_stream_forget_one_of(CUcontext context, size_t *cursor,
                                      struct spw_stream_info *ret_info)
{
    bool part = *cursor > 0;
    struct spw_stream_info *info;

    spw_lock(&spw_locks.streams);
    info = take_one_of(context, cursor);
    if (info == NULL && part) {
        *cursor = 0; /* another thread may have changed the table */
        info = take_one_of(context, cursor);
    }
    spw_unlock(&spw_locks.streams);
    return hand_over(info, ret_info);
}

bool spw_program_stream_forget_context(CUcontext context, struct spw_stream_info *ret_info)
{
    bool known;

    spw_lock(&spw_locks.process);
    known = spw_device_contexts_remove(context, ret_info);
    spw_unlock(&spw_locks.process);
    if (!known) {
        return false;
    }
    age_recent();
    return true;
}

void spw_program_stream_reset(void)
{
    spw_lock(&spw_locks.streams);
    spw_map_clear(&spw_program.streams.created);
    age_recent();
    spw_unlock(&spw_locks.streams);
}
