#include "backend/fence.h"

#include <stdlib.h>

#include "common/backoff.h"

#define CALL(fences, fn, ...) SPW_DRIVER_CALL((fences)->driver, (fences)->ordinal, fn, __VA_ARGS__)

/* ---- contexts ---- */

CUresult spw_backend_fences_enter(struct spw_fences *fences, CUcontext context, bool *ret_pushed)
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

void spw_backend_fences_leave(struct spw_fences *fences, bool pushed)
{
    CUcontext popped;

    if (pushed) {
        (void)CALL(fences, cuCtxPopCurrent_v2, &popped);
    }
}

void spw_backend_fences_note_context(struct spw_fences *fences, CUcontext context, bool peer)
{
    for (size_t i = 0; i < fences->context_count; i++) {
        if (fences->contexts[i] == context) {
            return;
        }
    }
    if (context == NULL) {
        return;
    }
    if (fences->context_count == SPW_FENCE_CONTEXTS) {
        fences->overflow = true;
        return;
    }
    fences->contexts[fences->context_count++] = context;
    if (!peer) {
        fences->contexts[fences->context_count - 1] = fences->contexts[fences->own_count];
        fences->contexts[fences->own_count++] = context;
    }
}

/* Fills the gap with the last of its kind. */
static void take_out(struct spw_fences *fences, size_t index)
{
    if (index < fences->own_count) {
        fences->contexts[index] = fences->contexts[--fences->own_count];
        index = fences->own_count;
    }
    fences->contexts[index] = fences->contexts[--fences->context_count];
}

/* The events of a context that is gone, or whose work is complete, hold nobody up any more. */
static void strip(struct spw_fence *fence, CUcontext context)
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

void spw_backend_fences_forget_context(struct spw_fences *fences, CUcontext context)
{
    struct spw_event **link = &fences->unused_events;

    for (struct spw_fence *fence = fences->all; fence != NULL; fence = fence->all_next) {
        strip(fence, context);
    }

    for (size_t i = 0; i < fences->context_count; i++) {
        if (fences->contexts[i] == context) {
            take_out(fences, i);
            break;
        }
    }
    while (*link != NULL) {
        struct spw_event *event = *link;

        if (event->context != context) {
            link = &event->next;
            continue;
        }
        *link = event->next;
        free(event);
    }
}

/* ---- events ---- */

/* An event of `context`, which is current: a kept one or a new one. NULL when there is none. */
static struct spw_event *take_event(struct spw_fences *fences, CUcontext context)
{
    struct spw_event *event;

    for (struct spw_event **link = &fences->unused_events; *link != NULL; link = &(*link)->next) {
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

static void keep_event(struct spw_fences *fences, struct spw_event *event)
{
    event->next = fences->unused_events;
    fences->unused_events = event;
}

static struct spw_fence *take_fence(struct spw_fences *fences)
{
    struct spw_fence *fence = fences->unused;

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

void spw_backend_fence_drop(struct spw_fences *fences, struct spw_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        keep_event(fences, fence->events[i]);
    }
    fence->count = 0;
    fence->next = fences->unused;
    fences->unused = fence;
}

/* ---- recording ---- */

static bool captures_open(const struct spw_fences *fences)
{
    return atomic_load_explicit(&fences->driver->captures_open, memory_order_relaxed) > 0;
}

static bool is_capturing(struct spw_fences *fences, const struct spw_stream *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (!captures_open(fences)) {
        return false;
    }
    /* The legacy stream answers with an error while a capture forbids its use. */
    return CALL(fences, cuStreamIsCapturing, stream->handle, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult record_event(struct spw_fences *fences, struct spw_event *event,
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
static CUresult add_event(struct spw_fences *fences, struct spw_fence *fence, CUcontext context,
                          const struct spw_stream *stream)
{
    struct spw_event *event;
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
        /* An old driver: what is synchronised needs no event. */
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
        return SPW_OK; /* and all its work with it */
    default:
        return spw_err_from_driver((int)result);
    }
}

enum spw_err spw_backend_fence_record(struct spw_fences *fences, const struct spw_stream *stream,
                                      struct spw_fence **ret_fence)
{
    struct spw_fence *fence;
    CUresult result = CUDA_SUCCESS;
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

enum spw_err spw_backend_fence_query(struct spw_fences *fences, struct spw_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        const struct spw_event *event = fence->events[i];
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

enum spw_err spw_backend_fence_wait(struct spw_fences *fences, struct spw_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        const struct spw_event *event = fence->events[i];
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

enum spw_err spw_backend_fence_wait_soon(struct spw_fences *fences, struct spw_fence *fence,
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

enum spw_err spw_backend_fence_wait_stream(struct spw_fences *fences,
                                           const struct spw_stream *stream, struct spw_fence *fence)
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

void spw_backend_fences_fini(struct spw_fences *fences, bool destroy_events)
{
    for (struct spw_fence *fence = fences->all; fence != NULL; fence = fence->all_next) {
        for (size_t i = 0; i < fence->count; i++) {
            keep_event(fences, fence->events[i]);
        }
    }
    while (fences->unused_events != NULL) {
        struct spw_event *event = fences->unused_events;

        fences->unused_events = event->next;
        if (destroy_events) {
            (void)CALL(fences, cuEventDestroy_v2, event->event);
        }
        free(event);
    }
    while (fences->all != NULL) {
        struct spw_fence *fence = fences->all;

        fences->all = fence->all_next;
        free(fence);
    }
}
