#include "backend/fence.h"

#include <stdlib.h>

#include "system/backoff.h"

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

static struct spw_backend_context *find_context(const struct spw_backend_fences *fences,
                                                CUcontext context)
{
    struct spw_backend_context *known = fences->contexts;

    while (known != NULL && known->context != context) {
        known = known->next;
    }
    return known;
}

CUcontext spw_backend_fences_own_context(struct spw_backend_fences *fences)
{
    CUcontext context = NULL;

    spw_lock(&fences->lock);
    /* New contexts are put in front, so the last match is the oldest. */
    for (const struct spw_backend_context *known = fences->contexts; known != NULL;
         known = known->next) {
        context = known->peer || known->ending ? context : known->context;
    }
    spw_unlock(&fences->lock);
    return context;
}

void spw_backend_fences_end_context(struct spw_backend_fences *fences, CUcontext context)
{
    struct spw_backend_context *known;

    spw_lock(&fences->lock);
    known = find_context(fences, context);
    if (known != NULL) {
        known->ending = true;
    }
    spw_unlock(&fences->lock);
}

static void note_context(struct spw_backend_fences *fences, CUcontext context, bool peer)
{
    struct spw_backend_context *known;

    if (context == NULL || find_context(fences, context) != NULL) {
        return;
    }
    known = malloc(sizeof(*known));
    if (known == NULL) {
        fences->missing = true;
        return;
    }
    /* Earlier deferred fences do not depend on a new context. */
    *known = (struct spw_backend_context){.next = fences->contexts,
                                          .context = context,
                                          .peer = peer,
                                          .synchronized = fences->last_deferred};
    fences->contexts = known;
}

void spw_backend_fences_note_context(struct spw_backend_fences *fences, CUcontext context,
                                     bool peer)
{
    spw_lock(&fences->lock);
    note_context(fences, context, peer);
    spw_unlock(&fences->lock);
}

/* Removes the record of a context. */
static void take_out(struct spw_backend_fences *fences, CUcontext context)
{
    struct spw_backend_context **link = &fences->contexts, *known;

    while (*link != NULL && (*link)->context != context) {
        link = &(*link)->next;
    }
    known = *link;
    if (known != NULL) {
        *link = known->next;
        free(known);
    }
}

/* Removes from a list the events of a context that is gone or whose work is complete. */
static void strip(struct spw_backend_event **link, CUcontext context)
{
    while (*link != NULL) {
        struct spw_backend_event *event = *link;

        if (event->context == context) {
            *link = event->next;
            free(event);
        } else {
            link = &event->next;
        }
    }
}

/* Completes a watch in a context that is gone. */
static void stop_watching(struct spw_backend_fence *fence, CUcontext context)
{
    if (fence->watched_in == context) {
        fence->watched_in = NULL;
    }
}

/* Waits until no thread synchronises the context: a short wait, since its work is complete. */
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
    for (struct spw_backend_fence *fence = fences->all; fence != NULL; fence = fence->all_next) {
        strip(&fence->events, context);
        stop_watching(fence, context);
    }
    strip(&fences->unused_events, context);
    take_out(fences, context);
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
    while (fences->contexts != NULL) {
        forget_context(fences, fences->contexts->context);
    }
    spw_unlock(&fences->lock);
}

/* ---- events ---- */

/* Returns an event of `context`, which is current: an unused event or a new one. NULL on a
 * failure. */
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
    while (fence->events != NULL) {
        struct spw_backend_event *event = fence->events;

        fence->events = event->next;
        keep_event(fences, event);
    }
}

static void drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    drop_events(fences, fence);
    fence->deferred = 0;
    fence->watched_in = NULL;
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
    event->next = fence->events;
    fence->events = event;
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
        return SPW_OK; /* the context's work is gone with it */
    default:
        return spw_err_from_driver((int)result);
    }
}

/* Records one event in each context, or defers the fence. */
static CUresult record_all(struct spw_backend_fences *fences, struct spw_backend_fence *fence,
                           const struct spw_stream *all)
{
    CUresult result = fences->defers ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;

    for (const struct spw_backend_context *known = fences->contexts;
         result == CUDA_SUCCESS && known != NULL; known = known->next) {
        result = add_event(fences, fence, known->context, all);
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
    if (stream->id == SPW_STREAM_ALL ? captures_open(fences) || fences->missing
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

enum spw_err spw_backend_fence_watch(struct spw_backend_fences *fences,
                                     const struct spw_stream *stream,
                                     struct spw_backend_fence **ret_fence)
{
    struct spw_backend_fence *fence;

    spw_lock(&fences->lock);
    fence = take_fence(fences);
    if (fence != NULL) {
        fence->watched_in = stream->context;
        fence->watched = stream->handle;
        *ret_fence = fence;
    }
    spw_unlock(&fences->lock);
    return fence != NULL ? SPW_OK : SPW_E_METADATA_NOMEM;
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

/* A thread without a context gets INVALID_CONTEXT for any fence, so the call is repeated in
 * `context`. If `context` is gone, so is its work. */
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

static enum spw_err query_watched(struct spw_backend_fences *fences,
                                  const struct spw_backend_fence *fence)
{
    CUresult result;

    CALL_IN(result, fences, fence->watched_in, cuStreamQuery, fence->watched);
    return to_err(result);
}

static enum spw_err query(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    if (fence->deferred > fences->synchronized) {
        return SPW_E_AGAIN;
    }
    if (fence->watched_in != NULL) {
        return query_watched(fences, fence);
    }
    for (const struct spw_backend_event *event = fence->events; event != NULL;
         event = event->next) {
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

/* Waits for all work of a context. Releases the lock during the wait. */
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

/* Returns a context whose work may delay deferred fences up to `number`; NULL if there is none. */
static CUcontext find_behind(const struct spw_backend_fences *fences, uint64_t number)
{
    const struct spw_backend_context *known = fences->contexts;

    while (known != NULL && known->synchronized >= number) {
        known = known->next;
    }
    return known != NULL ? known->context : NULL;
}

/* Waits for all work of every context, which completes all earlier deferred fences. Releases the
 * lock during the waits. The work of a removed context is complete. */
static enum spw_err synchronize(struct spw_backend_fences *fences)
{
    uint64_t covered = fences->last_deferred;
    CUcontext context;

    while ((context = find_behind(fences, covered)) != NULL) {
        struct spw_backend_context *known;
        enum spw_err err;

        if (captures_open(fences)) {
            return SPW_E_AGAIN;
        }
        err = to_err(visit(fences, context));
        if (err != SPW_OK) {
            return err;
        }
        known = find_context(fences, context);
        if (known != NULL && known->synchronized < covered) {
            known->synchronized = covered;
        }
    }
    if (covered > fences->synchronized) {
        fences->synchronized = covered;
    }
    return SPW_OK;
}

/* Polls, since the driver's wait for an event would go on while another thread destroys the event's
 * context. */
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
    if (is_capturing(fences, stream) || fence->deferred > fences->synchronized ||
        fence->watched_in != NULL) {
        return SPW_E_AGAIN;
    }
    for (const struct spw_backend_event *event = fence->events; event != NULL;
         event = event->next) {
        CUresult result;
        enum spw_err err;

        CALL_IN(result, fences, stream->context, cuStreamWaitEvent, stream->handle, event->event,
                0);
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
        drop_events(fences, fence);
    }
    while (fences->contexts != NULL) {
        take_out(fences, fences->contexts->context);
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
