#include "sim/driver/exec/event.h"

#include <stdlib.h>

#include "sim/driver/core/clock.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/meter.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/memory/mempool.h"

struct sim_record {
    unsigned int refs;
    struct sim_fence fence;
    uint64_t time;       /* when the stream reached the record */
    uint64_t metered_ns; /* estimate of this time (meter.h) */
};

static void record_unref(struct sim_record *record)
{
    if (record == NULL || --record->refs > 0) {
        return;
    }
    sim_stream_unref(record->fence.stream);
    free(record);
}

CUresult sim_event_resolve(CUevent handle, struct sim_event **ret_event)
{
    struct sim_event *event = sim_handle_object(SIM_HANDLE_EVENT, handle);

    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->ctx->sticky != CUDA_SUCCESS) {
        return event->ctx->sticky;
    }
    *ret_event = event;
    return CUDA_SUCCESS;
}

struct sim_event *sim_event_new(CUcontext ctx, unsigned int flags)
{
    struct sim_event *event = calloc(1, sizeof(*event));

    if (event == NULL) {
        return NULL;
    }
    event->handle = sim_handle_create(SIM_HANDLE_EVENT, event);
    if (event->handle == NULL) {
        free(event);
        return NULL;
    }
    event->refs = 1;
    event->ctx = ctx;
    event->flags = flags;
    event->next = ctx->work->events;
    ctx->work->events = event;
    return event;
}

struct sim_event *sim_event_ref(struct sim_event *event)
{
    event->refs++;
    return event;
}

void sim_event_unref(struct sim_event *event)
{
    if (--event->refs > 0) {
        return;
    }
    record_unref(event->record);
    free(event->captured);
    free(event);
}

void sim_event_retire(struct sim_event *event)
{
    struct sim_event **place = &event->ctx->work->events;

    while (*place != event) {
        place = &(*place)->next;
    }
    *place = event->next;
    sim_handle_destroy(SIM_HANDLE_EVENT, event->handle);
    event->handle = NULL;
    event->ctx = NULL;
    sim_event_unref(event);
}

/* The operation that a stream reaches at a recorded event. */
struct mark_op {
    struct sim_op op;
    struct sim_record *record;
};

static enum sim_outcome mark_run(struct sim_op *op, struct sim_item *item)
{
    ((struct mark_op *)op)->record->time = sim_clock_now();
    return SIM_DONE;
}

static void mark_fini(struct sim_op *op)
{
    record_unref(((struct mark_op *)op)->record);
}

static const struct sim_op_class mark_class = {
    .name = "record",
    .node_type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
    .run = mark_run,
    .fini = mark_fini,
};

CUresult sim_event_record_after(struct sim_event *event, struct sim_stream *stream,
                                const struct sim_fences *after)
{
    struct sim_record *record = calloc(1, sizeof(*record));
    struct mark_op *mark = sim_op_new(&mark_class, sizeof(*mark), sim_stream_device(stream));
    CUresult result;

    if (record == NULL || mark == NULL) {
        free(record);
        free(mark);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    record->refs = 2; /* the event's, the operation's */
    record->fence.stream = sim_stream_ref(stream);
    record->fence.number = stream->submitted + 1;
    record->metered_ns = stream->metered_ns;
    mark->record = record;
    result = sim_schedule_submit(stream, &mark->op, after);
    sim_op_unref(&mark->op);
    if (result != CUDA_SUCCESS) {
        record_unref(record);
        return result;
    }
    record_unref(event->record);
    event->record = record;
    event->capture_id = 0;
    return CUDA_SUCCESS;
}

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
    return sim_event_record_after(event, stream, NULL);
}

bool sim_event_is_recorded(const struct sim_event *event)
{
    return event->record != NULL;
}

bool sim_event_is_done(const struct sim_event *event)
{
    return event->record == NULL || sim_fence_is_done(&event->record->fence);
}

uint64_t sim_event_time(const struct sim_event *event)
{
    return event->record->time;
}

void sim_event_expect(const struct sim_event *event)
{
    if (event->record != NULL) {
        sim_schedule_expect(&event->record->fence);
    }
}

CUresult sim_event_add_fence(const struct sim_event *event, struct sim_fences *fences)
{
    if (event->record == NULL) {
        return CUDA_SUCCESS;
    }
    return sim_fences_add(fences, event->record->fence.stream, event->record->fence.number);
}

/* An item that only waits for its fences. */
static const struct sim_op_class wait_class = {
    .name = "wait",
    .node_type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
};

CUresult sim_event_wait(struct sim_event *event, struct sim_stream *stream)
{
    struct sim_fences fences = {0};
    struct sim_op *op;
    CUresult result;

    if (event->record != NULL) {
        sim_meter_stream_waits(stream, event->record->metered_ns);
    }
    if (sim_event_is_done(event)) {
        return CUDA_SUCCESS;
    }
    op = sim_op_new(&wait_class, sizeof(*op), sim_stream_device(stream));
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_event_add_fence(event, &fences);
    if (result == CUDA_SUCCESS) {
        result = sim_schedule_submit(stream, op, &fences);
    }
    sim_fences_fini(&fences);
    sim_op_unref(op);
    return result;
}

/* Event nodes of graphs. */
struct event_op {
    struct sim_op op;
    struct sim_event *event; /* a reference */
};

static CUresult record_node_launch(struct sim_op *op, struct sim_stream *stream)
{
    return sim_event_record(((struct event_op *)op)->event, stream);
}

static CUresult wait_node_launch(struct sim_op *op, struct sim_stream *stream)
{
    return sim_event_wait(((struct event_op *)op)->event, stream);
}

static void event_op_fini(struct sim_op *op)
{
    sim_event_unref(((struct event_op *)op)->event);
}

static const struct sim_op_class record_node_class = {
    .name = "record",
    .node_type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
    .launch = record_node_launch,
    .fini = event_op_fini,
};

static const struct sim_op_class wait_node_class = {
    .name = "wait",
    .node_type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
    .launch = wait_node_launch,
    .fini = event_op_fini,
};

static struct sim_op *event_op_new(const struct sim_op_class *class, struct sim_event *event,
                                   int device)
{
    struct event_op *op = sim_op_new(class, sizeof(*op), device);

    if (op == NULL) {
        return NULL;
    }
    op->event = sim_event_ref(event);
    return &op->op;
}

struct sim_op *sim_event_record_op_new(struct sim_event *event, int device)
{
    return event_op_new(&record_node_class, event, device);
}

struct sim_op *sim_event_wait_op_new(struct sim_event *event, int device)
{
    return event_op_new(&wait_node_class, event, device);
}

struct sim_event *sim_event_of_op(const struct sim_op *op)
{
    return ((const struct event_op *)op)->event;
}

CUresult sim_event_settle(struct sim_event *event)
{
    struct sim_fences fences = {0};
    CUcontext ctx = event->ctx;
    CUresult result = sim_event_add_fence(event, &fences);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (event->record != NULL) {
        sim_meter_host_waits(event->record->metered_ns);
    }
    sim_schedule_wait_all(&fences);
    sim_fences_fini(&fences);
    sim_mempool_synchronized(ctx->device);
    return sim_ctx_is_live(ctx) ? ctx->sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
