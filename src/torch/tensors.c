#include "torch/tensors.h"

#include "common/map.h"
#include "process/process.h"
#include "program/stream.h"
#include "system/backoff.h"
#include "system/lock.h"
#include "torch/figures.h"
#include "torch/reports.h"
#include "torch/state.h"

#include <stdlib.h>

/* A stream that used a tensor. After the tensor is freed, it has the event behind the stream's
 * work. */
struct use {
    struct use *next;
    struct spw_stream stream;
    int device;
    CUevent event; /* NULL: not recorded yet */
    bool recorded;
};

struct spw_torch_record {
    struct spw_torch_tensor tensor;
    struct use *uses;
    bool everywhere;               /* unknown streams used the tensor */
    struct spw_torch_record *next; /* next held record */
};

enum { SPARE_MOST = 1024, SETTLED_MOST_NS = 1000000000 };

static struct spw_torch_tensors *const tensors = &spw_torch.tensors;

/* ---- the table ---- */

/* Caller holds the lock. */
static struct spw_torch_record *new_record(void)
{
    struct spw_torch_record *record = tensors->spare;

    if (SPW_UNLIKELY(record == NULL)) {
        return malloc(sizeof(*record));
    }
    tensors->spare = record->next;
    tensors->spare_count--;
    return record;
}

/* Caller holds the lock. */
static void end_record(struct spw_torch_record *record)
{
    if (SPW_UNLIKELY(tensors->spare_count >= SPARE_MOST)) {
        free(record);
        return;
    }
    record->next = tensors->spare;
    tensors->spare = record;
    tensors->spare_count++;
}

/* Caller holds the lock. */
static bool add(const struct spw_torch_tensor *tensor)
{
    struct spw_torch_record *record = new_record();

    if (record == NULL) {
        return false;
    }
    *record = (struct spw_torch_record){.tensor = *tensor};
    if (!spw_map_put(&tensors->by_address, tensor->address, record)) {
        end_record(record);
        return false;
    }
    spw_torch_figures_new(tensor->device, tensor->bytes, tensor->asked);
    spw_torch_reports_add(tensor->address, tensor->asked);
    return true;
}

bool spw_torch_tensors_add(const struct spw_torch_tensor *tensor)
{
    bool added;

    spw_lock(&spw_locks.tensors);
    added = add(tensor);
    spw_unlock(&spw_locks.tensors);
    spw_torch_reports_limit();
    return added;
}

bool spw_torch_tensors_find(uint64_t address, struct spw_torch_tensor *ret_tensor)
{
    const struct spw_torch_record *record;

    spw_lock(&spw_locks.tensors);
    record = spw_map_get(&tensors->by_address, address);
    if (record != NULL) {
        *ret_tensor = record->tensor;
    }
    spw_unlock(&spw_locks.tensors);
    return record != NULL;
}

void spw_torch_tensors_each(void (*visit)(const struct spw_torch_tensor *tensor, void *context),
                            void *context)
{
    const struct spw_torch_record *record;
    size_t cursor = 0;

    spw_lock(&spw_locks.tensors);
    while ((record = spw_map_next(&tensors->by_address, &cursor)) != NULL) {
        visit(&record->tensor, context);
    }
    spw_unlock(&spw_locks.tensors);
}

/* ---- other streams ---- */

static bool is_used_on(const struct spw_torch_record *record, const struct spw_stream *stream)
{
    for (const struct use *use = record->uses; use != NULL; use = use->next) {
        if (use->stream.id == stream->id) {
            return true;
        }
    }
    return false;
}

/* Adds a use of a tensor. If `info` is NULL, the stream is unknown. The handle of a thread's own
 * stream means a different stream on the thread that frees the tensor. Caller holds the lock. */
static void add_use(struct spw_torch_record *record, const struct spw_stream_info *info)
{
    bool known = info != NULL && !info->stream.thread_bound;
    struct use *use;

    if (known && is_used_on(record, &info->stream)) {
        return;
    }
    use = known ? malloc(sizeof(*use)) : NULL;
    if (use == NULL) {
        record->everywhere = true;
        return;
    }
    *use = (struct use){.next = record->uses, .stream = info->stream, .device = info->ordinal};
    record->uses = use;
}

bool spw_torch_tensors_use(uint64_t address, CUstream stream)
{
    const struct spw_stream_info *info = spw_program_stream_get(stream, false);
    struct spw_torch_record *record;

    spw_lock(&spw_locks.tensors);
    record = spw_map_get(&tensors->by_address, address);
    if (record != NULL && stream != record->tensor.order.stream.handle) {
        add_use(record, info);
    }
    spw_unlock(&spw_locks.tensors);
    return record != NULL;
}

/* Calls the driver while the stream's context is current. */
static CUresult in_context(const struct use *use,
                           CUresult (*call)(struct spw_driver *driver, struct use *use),
                           struct use *changed)
{
    struct spw_driver *driver = spw_process_driver();
    CUcontext popped;
    CUresult result =
        SPW_DRIVER_CALL(driver, use->device, cuCtxPushCurrent_v2, use->stream.context);

    if (result == CUDA_SUCCESS) {
        result = call(driver, changed);
        (void)SPW_DRIVER_CALL(driver, use->device, cuCtxPopCurrent_v2, &popped);
    }
    return result;
}

static CUresult record_event(struct spw_driver *driver, struct use *use)
{
    const struct spw_stream_info *info = spw_program_stream_get(use->stream.handle, false);
    CUresult result;

    if (info == NULL || info->stream.id != use->stream.id) {
        return CUDA_ERROR_INVALID_HANDLE; /* gone, or another stream has its handle */
    }
    result =
        SPW_DRIVER_CALL(driver, use->device, cuEventCreate, &use->event, CU_EVENT_DISABLE_TIMING);
    return result == CUDA_SUCCESS
               ? SPW_DRIVER_CALL(driver, use->device, cuEventRecord, use->event, use->stream.handle)
               : result;
}

static CUresult end_event(struct spw_driver *driver, struct use *use)
{
    return SPW_DRIVER_CALL(driver, use->device, cuEventDestroy_v2, use->event);
}

static bool captures(void)
{
    return atomic_load_explicit(&spw_process_driver()->captures_open, memory_order_relaxed) > 0;
}

/* Queries whether the stream has done all work before the event. Returns CUDA_ERROR_NOT_READY if it
 * has not, or another error if this cannot be found out. The first call records the event. */
static CUresult ask_event(struct use *use, bool wait)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result = CUDA_SUCCESS;

    if (!use->recorded) {
        use->recorded = true;
        result = in_context(use, record_event, use);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    return wait ? SPW_DRIVER_CALL(driver, use->device, cuEventSynchronize, use->event)
                : SPW_DRIVER_CALL(driver, use->device, cuEventQuery, use->event);
}

/* Removes the streams whose work is done. Returns true if none is left. A stream that no longer
 * exists may still have work; the pool then waits for all work. */
static bool settle_one(struct spw_torch_record *record, bool wait)
{
    struct use **place = &record->uses;

    while (*place != NULL) {
        struct use *use = *place;
        CUresult result = ask_event(use, wait);

        if (result == CUDA_ERROR_NOT_READY) {
            place = &use->next;
            continue;
        }
        record->everywhere = record->everywhere || result != CUDA_SUCCESS;
        if (use->event != NULL) {
            (void)in_context(use, end_event, use);
        }
        *place = use->next;
        free(use);
    }
    return record->uses == NULL;
}

/* Removes all records from the list of held ones. */
static struct spw_torch_record *take_held(void)
{
    struct spw_torch_record *first;

    spw_lock(&spw_locks.tensors);
    first = tensors->held;
    tensors->held = NULL;
    spw_unlock(&spw_locks.tensors);
    return first;
}

static void hold(struct spw_torch_record *record)
{
    spw_lock(&spw_locks.tensors);
    record->next = tensors->held;
    tensors->held = record;
    spw_unlock(&spw_locks.tensors);
}

static void give_back(const struct spw_torch_tensor *tensor, bool everywhere)
{
    spw_serve_direct_free(tensor->device, everywhere ? NULL : &tensor->order, tensor->address);
}

bool spw_torch_tensors_settle(bool wait)
{
    struct spw_backoff backoff = {.limit_ns = SETTLED_MOST_NS};
    struct spw_torch_record *next;
    bool any = false;

    if (SPW_LIKELY(atomic_load_explicit(&tensors->held_count, memory_order_relaxed) == 0) ||
        captures()) {
        return false;
    }
    atomic_fetch_add(&tensors->settling, 1);
    for (struct spw_torch_record *record = take_held(); record != NULL; record = next) {
        next = record->next;
        if (!settle_one(record, wait)) {
            hold(record);
            continue;
        }
        atomic_fetch_sub_explicit(&tensors->held_count, 1, memory_order_relaxed);
        spw_lock(&spw_locks.tensors);
        spw_torch_reports_add(record->tensor.address, 0);
        spw_unlock(&spw_locks.tensors);
        give_back(&record->tensor, record->everywhere);
        spw_lock(&spw_locks.tensors);
        spw_torch_figures_inactive(record->tensor.device, record->tensor.bytes);
        end_record(record);
        spw_unlock(&spw_locks.tensors);
        any = true;
    }
    atomic_fetch_sub(&tensors->settling, 1);
    while (wait && atomic_load(&tensors->settling) > 0 && spw_backoff_pause(&backoff)) {
        any = true; /* another thread is giving memory back */
    }
    return any;
}

bool spw_torch_tensors_free(uint64_t address, struct spw_torch_tensor *ret_tensor)
{
    bool held, everywhere;
    struct spw_torch_record *record;

    spw_lock(&spw_locks.tensors);
    record = spw_map_take(&tensors->by_address, address);
    if (record == NULL) {
        spw_unlock(&spw_locks.tensors);
        return false;
    }
    held = record->uses != NULL;
    everywhere = record->everywhere;
    *ret_tensor = record->tensor;
    spw_torch_figures_freed(ret_tensor->device, ret_tensor->bytes, ret_tensor->asked);
    if (!held) {
        spw_torch_figures_inactive(ret_tensor->device, ret_tensor->bytes);
        spw_torch_reports_add(address, 0);
        end_record(record);
    }
    spw_unlock(&spw_locks.tensors);
    spw_torch_reports_limit();
    if (SPW_LIKELY(!held)) {
        give_back(ret_tensor, everywhere);
        return true;
    }
    atomic_fetch_add_explicit(&tensors->held_count, 1, memory_order_relaxed);
    hold(record);
    (void)spw_torch_tensors_settle(/* wait */ false); /* records the events */
    return true;
}
