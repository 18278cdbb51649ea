#include "backend/fence.h"

#include <stdlib.h>

#include "common/backoff.h"

#define CALL(fences, fn, ...) SPW_DRIVER_CALL((fences)->driver, (fences)->ordinal, fn, __VA_ARGS__)

/* ---- contexts ---- */

CUresult spw_backend_fences_enter(struct spw_backend_fences *fences, CUcontext context,
                                  bool *ret_pushed)
{
    CUcontext current = NULL;
    CUresult result = CALL(fences, cuCtxGetCurrent, &current);

    *ret_pushed = false;
    if (result != CUDA_SUCCESS || current == context || context == NULL) {
        return result;
    }
    result = CALL(fences, cuCtxPushCurrent_v2, context);
    *ret_pushed = result == CUDA_SUCCESS;
    return result;
}

void spw_backend_fences_leave(struct spw_backend_fences *fences, bool pushed)
{
    CUcontext popped;

    if (pushed) {
        (void)CALL(fences, cuCtxPopCurrent_v2, &popped);
    }
}

static bool is_known(const struct spw_backend_fences *fences, CUcontext context)
{
    for (size_t i = 0; i < fences->context_count; i++) {
        if (fences->contexts[i] == context) {
            return true;
        }
    }
    return false;
}

static void note_context(struct spw_backend_fences *fences, CUcontext context, bool peer)
{
    if (context == NULL || is_known(fences, context)) {
        return;
    }
    if (fences->context_count == SPW_BACKEND_CONTEXTS) {
        fences->overflow = true;
        return;
    }
    fences->contexts[fences->context_count++] = context;
    if (!peer) {
        fences->contexts[fences->context_count - 1] = fences->contexts[fences->own_count];
        fences->contexts[fences->own_count++] = context;
    }
}

void spw_backend_fences_note_context(struct spw_backend_fences *fences, CUcontext context,
                                     bool peer)
{
    spw_lock(&fences->lock);
    note_context(fences, context, peer);
    spw_unlock(&fences->lock);
}

/* Removes an entry; the last of its kind takes its place. */
static void take_out(struct spw_backend_fences *fences, size_t index)
{
    if (index < fences->own_count) {
        fences->contexts[index] = fences->contexts[--fences->own_count];
        index = fences->own_count;
    }
    fences->contexts[index] = fences->contexts[--fences->context_count];
}

/* The events of a context that is gone, or whose work is complete, hold nobody up any more. */
static void strip(struct spw_backend_fence *fence, CUcontext context)
{
    size_t kept = 0;

    for (size_t i = 0; i < fence->count; i++) {
        if (fence->events[i]->context == context) {
            free(fence->events[i]);
        } else {
            fence->events[kept++] = fence->events[i];
        }
    }
    fence->count = kept;
}

/* Waits until no thread synchronises the context. Its work is complete, so the wait is short. */
static void await_visits(struct spw_backend_fences *fences, CUcontext context)
{
    const struct spw_backend_fence_visit *visit = fences->visits;

    while (visit != NULL) {
        if (visit->context == context) {
            spw_lock_wait(&fences->lock, &fences->left);
            visit = fences->visits;
        } else {
            visit = visit->next;
        }
    }
}

static void forget_context(struct spw_backend_fences *fences, CUcontext context)
{
    struct spw_backend_event **link = &fences->unused_events;

    for (struct spw_backend_fence *fence = fences->all; fence != NULL; fence = fence->all_next) {
        strip(fence, context);
    }

    for (size_t i = 0; i < fences->context_count; i++) {
        if (fences->contexts[i] == context) {
            take_out(fences, i);
            break;
        }
    }
    while (*link != NULL) {
        struct spw_backend_event *event = *link;

        if (event->context != context) {
            link = &event->next;
            continue;
        }
        *link = event->next;
        free(event);
    }
    await_visits(fences, context);
}

void spw_backend_fences_forget_context(struct spw_backend_fences *fences, CUcontext context)
{
    spw_lock(&fences->lock);
    forget_context(fences, context);
    spw_unlock(&fences->lock);
}

void spw_backend_fences_forget_contexts(struct spw_backend_fences *fences)
{
    spw_lock(&fences->lock);
    while (fences->context_count > 0) {
        forget_context(fences, fences->contexts[0]);
    }
    spw_unlock(&fences->lock);
}

/* ---- events ---- */

/* An event of `context`, which is current: a kept one or a new one. NULL when there is none. */
static struct spw_backend_event *take_event(struct spw_backend_fences *fences, CUcontext context)
{
    struct spw_backend_event *event;

    for (struct spw_backend_event **link = &fences->unused_events; *link != NULL;
         link = &(*link)->next) {
        if ((*link)->context == context) {
            event = *link;
            *link = event->next;
            return event;
        }
    }
    event = malloc(sizeof(*event));
    if (event == NULL) {
        return NULL;
    }
    event->context = context;
    if (CALL(fences, cuEventCreate, &event->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        free(event);
        return NULL;
    }
    return event;
}

static void keep_event(struct spw_backend_fences *fences, struct spw_backend_event *event)
{
    event->next = fences->unused_events;
    fences->unused_events = event;
}

static struct spw_backend_fence *take_fence(struct spw_backend_fences *fences)
{
    struct spw_backend_fence *fence = fences->unused;

    if (fence != NULL) {
        fences->unused = fence->next;
        return fence;
    }
    fence = calloc(1, sizeof(*fence));
    if (fence != NULL) {
        fence->all_next = fences->all;
        fences->all = fence;
    }
    return fence;
}

static void drop_events(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        keep_event(fences, fence->events[i]);
    }
    fence->count = 0;
}

static void drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    drop_events(fences, fence);
    fence->deferred = 0;
    fence->next = fences->unused;
    fences->unused = fence;
}

void spw_backend_fence_drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    spw_lock(&fences->lock);
    drop(fences, fence);
    spw_unlock(&fences->lock);
}

/* ---- recording ---- */

static bool captures_open(const struct spw_backend_fences *fences)
{
    return atomic_load_explicit(&fences->driver->captures_open, memory_order_relaxed) > 0;
}

static bool is_capturing(struct spw_backend_fences *fences, const struct spw_stream *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (!captures_open(fences)) {
        return false;
    }
    /* The legacy stream answers with an error while a capture forbids its use. */
    return CALL(fences, cuStreamIsCapturing, stream->handle, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult record_event(struct spw_backend_fences *fences, struct spw_backend_event *event,
                             const struct spw_stream *stream)
{
    if (stream->id != SPW_STREAM_ALL) {
        return CALL(fences, cuEventRecord, event->event, stream->handle);
    }
    if (fences->driver->cuCtxRecordEvent == NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CALL(fences, cuCtxRecordEvent, event->context, event->event);
}

/* Adds one event, recorded in `context`, to the fence. */
static CUresult add_event(struct spw_backend_fences *fences, struct spw_backend_fence *fence,
                          CUcontext context, const struct spw_stream *stream)
{
    struct spw_backend_event *event;
    bool pushed;
    CUresult result = spw_backend_fences_enter(fences, context, &pushed);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    event = take_event(fences, context);
    if (event == NULL) {
        spw_backend_fences_leave(fences, pushed);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = record_event(fences, event, stream);
    spw_backend_fences_leave(fences, pushed);
    if (result != CUDA_SUCCESS) {
        keep_event(fences, event);
        return result;
    }
    fence->events[fence->count++] = event;
    return CUDA_SUCCESS;
}

static enum spw_err to_err(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
        return SPW_E_AGAIN;
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_INVALID_CONTEXT:
        return SPW_OK; /* and all its work with it */
    default:
        return spw_err_from_driver((int)result);
    }
}

/* Records one event in each context, or makes the fence a deferred one. */
static CUresult record_all(struct spw_backend_fences *fences, struct spw_backend_fence *fence,
                           const struct spw_stream *all)
{
    CUresult result = fences->defers ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;

    for (size_t i = 0; result == CUDA_SUCCESS && i < fences->context_count; i++) {
        result = add_event(fences, fence, fences->contexts[i], all);
        if (to_err(result) == SPW_OK) {
            result = CUDA_SUCCESS; /* a context that is gone needs no event */
        }
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        fences->defers = true;
        drop_events(fences, fence);
        fence->deferred = ++fences->last_deferred;
        result = CUDA_SUCCESS;
    }
    return result;
}

static enum spw_err record(struct spw_backend_fences *fences, const struct spw_stream *stream,
                           struct spw_backend_fence **ret_fence)
{
    struct spw_backend_fence *fence;
    enum spw_err err;

    /* A fence of a whole context breaks every capture in it. */
    if (stream->id == SPW_STREAM_ALL ? captures_open(fences) || fences->overflow
                                     : is_capturing(fences, stream)) {
        return SPW_E_AGAIN;
    }
    fence = take_fence(fences);
    if (fence == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    err = to_err(stream->id == SPW_STREAM_ALL ? record_all(fences, fence, stream)
                                              : add_event(fences, fence, stream->context, stream));
    if (err != SPW_OK) {
        drop(fences, fence);
        return err;
    }
    *ret_fence = fence;
    return SPW_OK;
}

enum spw_err spw_backend_fence_record(struct spw_backend_fences *fences,
                                      const struct spw_stream *stream,
                                      struct spw_backend_fence **ret_fence)
{
    enum spw_err err;

    spw_lock(&fences->lock);
    err = record(fences, stream, ret_fence);
    spw_unlock(&fences->lock);
    return err;
}

bool spw_backend_fences_defer(struct spw_backend_fences *fences)
{
    bool defers;

    spw_lock(&fences->lock);
    defers = fences->defers || fences->driver->cuCtxRecordEvent == NULL;
    spw_unlock(&fences->lock);
    return defers;
}

bool spw_backend_fence_is_deferred(struct spw_backend_fences *fences,
                                   const struct spw_backend_fence *fence)
{
    bool deferred;

    spw_lock(&fences->lock);
    deferred = fence->deferred > fences->synchronized;
    spw_unlock(&fences->lock);
    return deferred;
}

/* ---- asking and waiting ---- */

/* A thread without a context is answered INVALID_CONTEXT, which says nothing about the fence: it is
 * asked again in `context`. When that is gone, so is its work. */
#define CALL_IN(result, fences, context, fn, ...)                                                  \
    do {                                                                                           \
        bool pushed;                                                                               \
                                                                                                   \
        (result) = CALL(fences, fn, __VA_ARGS__);                                                  \
        if ((result) != CUDA_ERROR_INVALID_CONTEXT) {                                              \
            break;                                                                                 \
        }                                                                                          \
        (result) = spw_backend_fences_enter((fences), (context), &pushed);                         \
        if ((result) == CUDA_SUCCESS) {                                                            \
            (result) = CALL(fences, fn, __VA_ARGS__);                                              \
            spw_backend_fences_leave((fences), pushed);                                            \
        }                                                                                          \
    } while (0)

static enum spw_err query(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    if (fence->deferred > fences->synchronized) {
        return SPW_E_AGAIN;
    }
    for (size_t i = 0; i < fence->count; i++) {
        const struct spw_backend_event *event = fence->events[i];
        CUresult result;
        enum spw_err err;

        CALL_IN(result, fences, event->context, cuEventQuery, event->event);
        err = to_err(result);
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}

enum spw_err spw_backend_fence_query(struct spw_backend_fences *fences,
                                     struct spw_backend_fence *fence)
{
    enum spw_err err;

    spw_lock(&fences->lock);
    err = query(fences, fence);
    spw_unlock(&fences->lock);
    return err;
}

/* Waits for all work of a context. Releases the lock meanwhile. */
static CUresult visit(struct spw_backend_fences *fences, CUcontext context)
{
    struct spw_backend_fence_visit own = {.next = fences->visits, .context = context};
    struct spw_backend_fence_visit **link = &fences->visits;
    CUresult result;
    bool pushed;

    fences->visits = &own;
    spw_unlock(&fences->lock);
    result = spw_backend_fences_enter(fences, context, &pushed);
    if (result == CUDA_SUCCESS) {
        result = SPW_DRIVER_CALL0(fences->driver, fences->ordinal, cuCtxSynchronize);
        spw_backend_fences_leave(fences, pushed);
    }
    spw_lock(&fences->lock);
    while (*link != &own) {
        link = &(*link)->next;
    }
    *link = own.next;
    pthread_cond_broadcast(&fences->left);
    return result;
}

/* Waits for all work of every context, which completes the deferred fences that were made before.
 * Releases the lock meanwhile. Contexts that are added meanwhile do not matter to those fences, and
 * the work of contexts that are removed is complete. */
static enum spw_err synchronize(struct spw_backend_fences *fences)
{
    CUcontext contexts[SPW_BACKEND_CONTEXTS];
    size_t count = fences->context_count;
    uint64_t covered = fences->last_deferred;

    for (size_t i = 0; i < count; i++) {
        contexts[i] = fences->contexts[i];
    }
    for (size_t i = 0; i < count; i++) {
        enum spw_err err = SPW_OK;

        if (captures_open(fences)) {
            return SPW_E_AGAIN;
        }
        if (is_known(fences, contexts[i])) {
            err = to_err(visit(fences, contexts[i]));
        }
        if (err != SPW_OK) {
            return err;
        }
    }
    if (covered > fences->synchronized) {
        fences->synchronized = covered;
    }
    return SPW_OK;
}

/* Polls, because the driver's own wait for an event would go on while another thread destroys the
 * event's context. */
static enum spw_err wait_soon(struct spw_backend_fences *fences, struct spw_backend_fence *fence,
                              uint64_t patience_ns)
{
    struct spw_backoff backoff = {.limit_ns = patience_ns};
    enum spw_err err;

    for (;;) {
        err = spw_backend_fence_query(fences, fence);
        if (err != SPW_E_AGAIN || !spw_backoff_pause(&backoff)) {
            return err;
        }
    }
}

enum spw_err spw_backend_fence_wait(struct spw_backend_fences *fences,
                                    struct spw_backend_fence *fence)
{
    enum spw_err err = SPW_OK;

    spw_lock(&fences->lock);
    if (fence->deferred > fences->synchronized) {
        err = synchronize(fences);
    }
    spw_unlock(&fences->lock);
    return err != SPW_OK ? err : wait_soon(fences, fence, UINT64_MAX);
}

enum spw_err spw_backend_fence_wait_soon(struct spw_backend_fences *fences,
                                         struct spw_backend_fence *fence, uint64_t patience_ns)
{
    return spw_backend_fence_is_deferred(fences, fence) ? SPW_E_AGAIN
                                                        : wait_soon(fences, fence, patience_ns);
}

static enum spw_err wait_stream(struct spw_backend_fences *fences, const struct spw_stream *stream,
                                struct spw_backend_fence *fence)
{
    if (is_capturing(fences, stream) || fence->deferred > fences->synchronized) {
        return SPW_E_AGAIN;
    }
    for (size_t i = 0; i < fence->count; i++) {
        CUresult result;
        enum spw_err err;

        CALL_IN(result, fences, stream->context, cuStreamWaitEvent, stream->handle,
                fence->events[i]->event, 0);
        err = to_err(result);
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}

enum spw_err spw_backend_fence_wait_stream(struct spw_backend_fences *fences,
                                           const struct spw_stream *stream,
                                           struct spw_backend_fence *fence)
{
    enum spw_err err;

    spw_lock(&fences->lock);
    err = wait_stream(fences, stream, fence);
    spw_unlock(&fences->lock);
    return err;
}

/* ---- life ---- */

void spw_backend_fences_init(struct spw_backend_fences *fences, struct spw_driver *driver,
                             int ordinal)
{
    *fences = (struct spw_backend_fences){.driver = driver, .ordinal = ordinal};
    spw_lock_init(&fences->lock, SPW_LOCK_RANK_fences);
    pthread_cond_init(&fences->left, NULL);
}

void spw_backend_fences_fini(struct spw_backend_fences *fences, bool destroy_events)
{
    for (struct spw_backend_fence *fence = fences->all; fence != NULL; fence = fence->all_next) {
        for (size_t i = 0; i < fence->count; i++) {
            keep_event(fences, fence->events[i]);
        }
    }
    while (fences->unused_events != NULL) {
        struct spw_backend_event *event = fences->unused_events;

        fences->unused_events = event->next;
        if (destroy_events) {
            (void)CALL(fences, cuEventDestroy_v2, event->event);
        }
        free(event);
    }
    while (fences->all != NULL) {
        struct spw_backend_fence *fence = fences->all;

        fences->all = fence->all_next;
        free(fence);
    }
    pthread_cond_destroy(&fences->left);
    spw_lock_fini(&fences->lock);
}
