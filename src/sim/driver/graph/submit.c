#include "sim/driver/graph/submit.h"

#include "sim/driver/core/context.h"
#include "sim/driver/exec/meter.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/memory/mempool.h"

CUresult sim_submit(struct sim_stream *stream, struct sim_op *op)
{
    CUresult result = sim_capture_admit(stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (stream->capture != NULL) {
        return sim_capture_add(stream, op, NULL);
    }
    sim_meter_launched(op);
    return sim_schedule_submit(stream, op, NULL);
}

CUresult sim_submit_new(struct sim_stream *stream, struct sim_op *op)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (op != NULL) {
        result = sim_submit(stream, op);
        sim_op_unref(op);
    }
    return result;
}

/* The fences that a synchronisation with the stream waits for. */
static CUresult fences_of(struct sim_stream *stream, struct sim_fences *fences)
{
    CUresult result = sim_fences_add(fences, stream, stream->submitted);

    if (stream->role != SIM_STREAM_LEGACY) {
        return result;
    }
    for (struct sim_stream *other = stream->ctx->work->streams; other; other = other->next) {
        if (result == CUDA_SUCCESS && sim_stream_is_blocking(other)) {
            result = sim_fences_add(fences, other, other->submitted);
        }
    }
    return result;
}

CUresult sim_submit_wait(struct sim_stream *stream)
{
    struct sim_fences fences = {0};
    CUcontext ctx = stream->ctx;
    CUresult result = fences_of(stream, &fences);

    sim_stream_ref(stream);
    sim_meter_host_waits(stream->metered_ns);
    if (result == CUDA_SUCCESS) {
        sim_schedule_wait_all(&fences);
        sim_mempool_synchronized(ctx->device);
        /* During the wait, a primary context may have been destroyed and created again. */
        result = stream->ctx == ctx ? ctx->sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    sim_fences_fini(&fences);
    sim_stream_unref(stream);
    return result;
}

void sim_submit_expect(struct sim_stream *stream)
{
    struct sim_fences fences = {0};

    if (fences_of(stream, &fences) == CUDA_SUCCESS) {
        for (size_t i = 0; i < fences.count; i++) {
            sim_schedule_expect(&fences.list[i]);
        }
    }
    sim_fences_fini(&fences);
}

CUresult sim_submit_call(struct sim_stream *stream, void (*run)(void *arg), void *arg)
{
    struct sim_op *op = sim_op_new_call(sim_stream_device(stream), run, arg);
    CUresult result;

    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_capture_admit(stream);
    if (result == CUDA_SUCCESS) {
        result = sim_schedule_submit(stream, op, NULL);
    }
    sim_op_unref(op);
    return result;
}
