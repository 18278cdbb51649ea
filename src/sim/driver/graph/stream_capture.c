#include "sim/driver/graph/stream_capture.h"

#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "sim/driver/graph/graph.h"

struct sim_capture {
    struct sim_capture *next;
    unsigned long long id; /* never used twice */
    CUstreamCaptureMode mode;
    uint64_t thread; /* the thread that began the capture */
    bool invalidated;
    bool owns_graph;         /* cuStreamBeginCapture made the graph: freed if the capture fails */
    struct sim_graph *graph; /* a reference */
    struct sim_stream *origin;
    struct sim_stream **members; /* the capturing streams, including the origin */
    size_t member_count;
};

static struct sim_capture *captures; /* open captures */
static unsigned long long last_id;

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct sim_capture *capture_find(unsigned long long id)
{
    struct sim_capture *capture = captures;

    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

static void set_tail_fields(struct sim_stream *stream, struct sim_node **tail, size_t count)
{
    free(stream->tail);
    free(stream->tail_handles);
    stream->tail = tail;
    stream->tail_count = count;
    stream->tail_handles = NULL;
}

static CUresult copy_nodes(struct sim_node *const *nodes, size_t count,
                           struct sim_node ***ret_nodes)
{
    struct sim_node **copy = malloc((count + 1) * sizeof(struct sim_node *));

    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (count > 0) {
        memcpy(copy, nodes, count * sizeof(struct sim_node *));
    }
    *ret_nodes = copy;
    return CUDA_SUCCESS;
}

CUresult sim_capture_set_tail(struct sim_stream *stream, struct sim_node *const *nodes,
                              size_t count)
{
    struct sim_node **copy;
    CUresult result = copy_nodes(nodes, count, &copy);

    if (result == CUDA_SUCCESS) {
        set_tail_fields(stream, copy, count);
    }
    return result;
}

CUresult sim_capture_extend_tail(struct sim_stream *stream, struct sim_node *const *nodes,
                                 size_t count)
{
    struct sim_node **all;
    size_t all_count = stream->tail_count;

    all = malloc((stream->tail_count + count + 1) * sizeof(struct sim_node *));
    if (all == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (all_count > 0) {
        memcpy(all, stream->tail, all_count * sizeof(struct sim_node *));
    }
    for (size_t i = 0; i < count; i++) {
        bool known = false;

        for (size_t j = 0; j < all_count && !known; j++) {
            known = all[j] == nodes[i];
        }
        if (!known) {
            all[all_count++] = nodes[i];
        }
    }
    set_tail_fields(stream, all, all_count);
    return CUDA_SUCCESS;
}

static CUresult join(struct sim_capture *capture, struct sim_stream *stream,
                     struct sim_node *const *tail, size_t tail_count)
{
    CUresult result;

    if (!SPW_RESIZE(&capture->members, capture->member_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_capture_set_tail(stream, tail, tail_count);
    if (result == CUDA_SUCCESS) {
        capture->members[capture->member_count++] = stream;
        stream->capture = capture;
    }
    return result;
}

static void release_member(struct sim_stream *stream)
{
    set_tail_fields(stream, NULL, 0);
    stream->capture = NULL;
}

/* Ends the capture and returns its graph. The caller takes over the capture's reference to the
 * graph. */
static struct sim_graph *close_capture(struct sim_capture *capture)
{
    struct sim_capture **place = &captures;
    struct sim_graph *graph = capture->graph;

    while (*place != capture) {
        place = &(*place)->next;
    }
    *place = capture->next;
    for (size_t i = 0; i < capture->member_count; i++) {
        release_member(capture->members[i]);
    }
    graph->is_captured_into = false;
    free(capture->members);
    free(capture);
    return graph;
}

CUresult sim_capture_begin(struct sim_stream *stream, struct sim_graph *graph,
                           struct sim_node *const *after, size_t after_count,
                           CUstreamCaptureMode mode)
{
    struct sim_capture *capture;
    CUresult result;

    if (stream->role == SIM_STREAM_LEGACY) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL || (graph != NULL && graph->is_captured_into)) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->owns_graph = graph == NULL;
    capture->graph = graph == NULL ? sim_graph_new() : sim_graph_ref(graph);
    result = capture->graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                                    : join(capture, stream, after, after_count);
    if (result != CUDA_SUCCESS) {
        if (capture->graph != NULL) {
            sim_graph_unref(capture->graph);
        }
        free(capture->members);
        free(capture);
        return result;
    }
    capture->graph->is_captured_into = true;
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = sim_thread_id();
    capture->origin = stream;
    capture->next = captures;
    captures = capture;
    return CUDA_SUCCESS;
}

/* True if every stream that joined the capture was joined back. */
static bool is_joined(const struct sim_capture *capture)
{
    const struct sim_stream *origin = capture->origin;

    for (size_t i = 0; i < capture->member_count; i++) {
        const struct sim_stream *member = capture->members[i];

        if (!sim_graph_reaches(origin->tail, origin->tail_count, member->tail,
                               member->tail_count)) {
            return false;
        }
    }
    return true;
}

CUresult sim_capture_end(struct sim_stream *stream, struct sim_graph **ret_graph)
{
    struct sim_capture *capture = stream->capture;
    struct sim_graph *graph;
    bool owned;
    CUresult result = CUDA_SUCCESS;

    *ret_graph = NULL;
    if (capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread_id()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (capture->invalidated) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!is_joined(capture)) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    owned = capture->owns_graph;
    graph = close_capture(capture);
    if (result == CUDA_SUCCESS) {
        *ret_graph = graph;
    }
    if (result != CUDA_SUCCESS || !owned) {
        sim_graph_unref(graph);
    }
    return result;
}

void sim_capture_leave(struct sim_stream *stream)
{
    struct sim_capture *capture = stream->capture;

    if (capture == NULL) {
        return;
    }
    capture->invalidated = true;
    if (capture->origin == stream) {
        sim_graph_unref(close_capture(capture));
        return;
    }
    for (size_t i = 0; i < capture->member_count; i++) {
        if (capture->members[i] == stream) {
            capture->members[i] = capture->members[--capture->member_count];
            break;
        }
    }
    release_member(stream);
}

/* Finds the captures that the legacy stream of the context would have to wait for; returns true if
 * there are any. Invalidates these captures unless `look_only` is true. */
static bool conflicts_with_legacy(CUcontext ctx, bool look_only)
{
    bool any = false;

    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        for (size_t i = 0; i < capture->member_count; i++) {
            const struct sim_stream *member = capture->members[i];

            if (member->ctx == ctx && sim_stream_is_blocking(member)) {
                any = true;
                capture->invalidated = capture->invalidated || !look_only;
            }
        }
    }
    return any;
}

CUresult sim_capture_status(const struct sim_stream *stream, CUstreamCaptureStatus *ret_status)
{
    if (stream->role == SIM_STREAM_LEGACY && conflicts_with_legacy(stream->ctx, true)) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    *ret_status = stream->capture == NULL        ? CU_STREAM_CAPTURE_STATUS_NONE
                  : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

unsigned long long sim_capture_id(const struct sim_stream *stream)
{
    return stream->capture->id;
}

struct sim_graph *sim_capture_graph(const struct sim_stream *stream)
{
    return stream->capture->graph;
}

CUresult sim_capture_admit(struct sim_stream *stream)
{
    if (stream->role == SIM_STREAM_LEGACY && conflicts_with_legacy(stream->ctx, false)) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture != NULL && stream->capture->invalidated) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    return CUDA_SUCCESS;
}

CUresult sim_capture_refuse(struct sim_stream *stream)
{
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sim_capture_forbids_sync(struct sim_stream *stream)
{
    CUresult result = sim_capture_admit(stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    return stream->capture != NULL ? sim_capture_refuse(stream) : sim_capture_unsafe();
}

CUresult sim_capture_refuse_event(struct sim_event *event)
{
    struct sim_capture *capture = capture_find(event->capture_id);

    if (capture != NULL) {
        capture->invalidated = true;
    }
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sim_capture_forbids_event(struct sim_event *event)
{
    if (event->capture_id != 0) {
        (void)sim_capture_refuse_event(event);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return sim_capture_unsafe();
}

CUresult sim_capture_forbids_context(CUcontext ctx)
{
    CUresult result = CUDA_SUCCESS;

    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        for (size_t i = 0; i < capture->member_count; i++) {
            if (capture->members[i]->ctx == ctx) {
                capture->invalidated = true;
                result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
        }
    }
    return result;
}

/* True if the capture forbids potentially unsafe calls to the calling thread. */
static bool prohibits(const struct sim_capture *capture)
{
    if (capture->thread == sim_thread_id()) {
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    }
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_SUCCESS;
    }
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        if (prohibits(capture)) {
            capture->invalidated = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult sim_capture_add(struct sim_stream *stream, struct sim_op *op, struct sim_node **ret_node)
{
    struct sim_node *node;
    CUresult result =
        sim_graph_add(stream->capture->graph, op, stream->tail, stream->tail_count, &node);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_set_tail(stream, &node, 1);
    }
    if (result == CUDA_SUCCESS && ret_node != NULL) {
        *ret_node = node;
    }
    return result;
}

CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_node **nodes;
    CUresult result = copy_nodes(stream->tail, stream->tail_count, &nodes);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    free(event->captured);
    event->captured = nodes;
    event->captured_count = stream->tail_count;
    event->capture_id = stream->capture->id;
    return CUDA_SUCCESS;
}

/* A capturing stream must not wait for work outside of its capture. */
static CUresult wait_for_outside(struct sim_stream *stream, const struct sim_event *event)
{
    if (!sim_event_is_recorded(event)) {
        return CUDA_SUCCESS;
    }
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_capture *capture;

    if (event->capture_id == 0) {
        return wait_for_outside(stream, event);
    }
    capture = capture_find(event->capture_id);
    if (capture == NULL) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (capture->invalidated) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (stream->role == SIM_STREAM_LEGACY) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture == NULL) {
        return join(capture, stream, event->captured, event->captured_count);
    }
    if (stream->capture != capture) {
        stream->capture->invalidated = true;
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    return sim_capture_extend_tail(stream, event->captured, event->captured_count);
}

CUstreamCaptureMode sim_capture_exchange_mode(CUstreamCaptureMode mode)
{
    CUstreamCaptureMode before = thread_mode;

    thread_mode = mode;
    return before;
}
