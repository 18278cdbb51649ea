#include "backend/fence.h"

#include <stdlib.h>
#include <time.h>

#include "common/clock.h"

enum { PAUSE_MIN_NS = 5000, PAUSE_MAX_NS = 200000 };

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

void spw_backend_fences_note_context(struct spw_backend_fences *fences, CUcontext context,
                                     bool peer)
{
    for (size_t i = 0; i < fences->context_count; i++) {
        if (fences->contexts[i] == context) {
            return;
        }
    }
    if (context == NULL) {
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

/* Removes a context: the last one of its kind takes its place. */
static void take_out(struct spw_backend_fences *fences, size_t index)
{
    if (index < fences->own_count) {
        fences->contexts[index] = fences->contexts[--fences->own_count];
        index = fences->own_count;
    }
    fences->contexts[index] = fences->contexts[--fences->context_count];
}

/* Drops a fence's events of a context that is gone: its work is complete. */
static void drop_events_of(struct spw_backend_fence *fence, CUcontext context)
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

void spw_backend_fences_forget_context(struct spw_backend_fences *fences, CUcontext context)
{
    struct spw_backend_event **link = &fences->unused_events;

    for (struct spw_backend_fence *fence = fences->all; fence != NULL; fence = fence->all_next) {
        drop_events_of(fence, context);
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
}

/* ---- events ---- */

/* Takes an unused event of `context`, which is current, or creates one. NULL on failure. */
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

void spw_backend_fence_drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        keep_event(fences, fence->events[i]);
    }
    fence->count = 0;
    fence->next = fences->unused;
    fences->unused = fence;
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
    if (result == CUDA_ERROR_NOT_SUPPORTED && !captures_open(fences)) {
        /* An old driver: the device was synchronised, so no event is needed. */
        keep_event(fences, event);
        result = SPW_DRIVER_CALL0(fences->driver, fences->ordinal, cuCtxSynchronize);
        spw_backend_fences_leave(fences, pushed);
        return result;
    }
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
        return SPW_OK; /* its work is complete */
    default:
        return spw_err_from_driver((int)result);
    }
}

enum spw_err spw_backend_fence_record(struct spw_backend_fences *fences,
                                      const struct spw_stream *stream,
                                      struct spw_backend_fence **ret_fence)
{
    struct spw_backend_fence *fence;
    CUresult result = CUDA_SUCCESS;
    enum spw_err err;

    /* Recording an event of a whole context would break every capture in it. */
    if (stream->id == SPW_STREAM_ALL ? captures_open(fences) || fences->overflow
                                     : is_capturing(fences, stream)) {
        return SPW_E_AGAIN;
    }
    fence = take_fence(fences);
    if (fence == NULL) {
        return SPW_E_NO_HOST;
    }
    if (stream->id != SPW_STREAM_ALL) {
        result = add_event(fences, fence, stream->context, stream);
    }
    for (size_t i = 0; stream->id == SPW_STREAM_ALL && i < fences->context_count; i++) {
        result = add_event(fences, fence, fences->contexts[i], stream);
        if (to_err(result) != SPW_OK) {
            break;
        }
    }
    err = to_err(result);
    if (err != SPW_OK) {
        spw_backend_fence_drop(fences, fence);
        return err;
    }
    *ret_fence = fence;
    return SPW_OK;
}

/* ---- asking and waiting ---- */

/* Calls a driver function. A thread without a current context gets INVALID_CONTEXT, which says
 * nothing about the fence, so the call is repeated in `context`. If that is gone, its work is
 * complete. */
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

enum spw_err spw_backend_fence_query(struct spw_backend_fences *fences,
                                     struct spw_backend_fence *fence)
{
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

enum spw_err spw_backend_fence_wait(struct spw_backend_fences *fences,
                                    struct spw_backend_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        const struct spw_backend_event *event = fence->events[i];
        CUresult result;
        enum spw_err err;

        CALL_IN(result, fences, event->context, cuEventSynchronize, event->event);
        err = to_err(result);
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}

enum spw_err spw_backend_fence_wait_soon(struct spw_backend_fences *fences,
                                         struct spw_backend_fence *fence, uint64_t patience_ns)
{
    struct timespec pause = {.tv_nsec = PAUSE_MIN_NS};
    uint64_t begin = spw_clock_ns();
    enum spw_err err;

    for (;;) {
        err = spw_backend_fence_query(fences, fence);
        if (err != SPW_E_AGAIN || spw_clock_ns() - begin >= patience_ns) {
            return err;
        }
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < PAUSE_MAX_NS ? pause.tv_nsec * 2 : pause.tv_nsec;
    }
}

enum spw_err spw_backend_fence_wait_stream(struct spw_backend_fences *fences,
                                           const struct spw_stream *stream,
                                           struct spw_backend_fence *fence)
{
    if (is_capturing(fences, stream)) {
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
}
