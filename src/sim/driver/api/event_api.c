/* Exported functions on events. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/event.h"
#include "sim/driver/exec/poll_loop.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"

#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

SIM_API(cuEventCreate, SIM_CONTEXT, (CUevent * phEvent, unsigned int Flags))
{
    struct sim_event *event;

    if (phEvent == NULL || (Flags & ~(unsigned int)EVENT_FLAGS) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((Flags & CU_EVENT_INTERPROCESS) != 0 && (Flags & CU_EVENT_DISABLE_TIMING) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    event = sim_event_new(sim_ctx_current(), Flags);
    if (event == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phEvent = event->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuEventDestroy, SIM_CONTEXT, (CUevent hEvent))
{
    struct sim_event *event = sim_handle_object(SIM_HANDLE_EVENT, hEvent);

    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_event_retire(event);
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuEventDestroy_v2, cuEventDestroy);

/* Finds the stream and the event of a call. */
static CUresult resolve_both(bool ptsz, CUstream hStream, CUevent hEvent,
                             struct sim_stream **ret_stream, struct sim_event **ret_event)
{
    CUresult result = sim_stream_resolve(hStream, ptsz, ret_stream);

    return result == CUDA_SUCCESS ? sim_event_resolve(hEvent, ret_event) : result;
}

static CUresult record(bool ptsz, CUevent hEvent, CUstream hStream, unsigned int flags)
{
    struct sim_stream *stream;
    struct sim_event *event;
    CUresult result = resolve_both(ptsz, hStream, hEvent, &stream, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (event->ctx != stream->ctx) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if ((flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL) != 0 ||
        (flags != 0 && !sim_stream_is_capturing(stream))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_admit(stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (!sim_stream_is_capturing(stream)) {
        result = sim_event_record(event, stream);
        return result == CUDA_SUCCESS && event->shared ? sim_event_settle(event) : result;
    }
    if (flags != 0) {
        return sim_submit_new(stream, sim_event_record_op_new(event, sim_stream_device(stream)));
    }
    return sim_capture_record(stream, event);
}

SIM_API_PTSZ(cuEventRecord, SIM_CONTEXT, (CUevent hEvent, CUstream hStream))
{
    return record(ptsz, hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

SIM_API_PTSZ(cuEventRecordWithFlags, SIM_CONTEXT,
             (CUevent hEvent, CUstream hStream, unsigned int flags))
{
    return record(ptsz, hEvent, hStream, flags);
}

SIM_API_PTSZ(cuStreamWaitEvent, SIM_CONTEXT, (CUstream hStream, CUevent hEvent, unsigned int Flags))
{
    struct sim_stream *stream;
    struct sim_event *event;
    CUresult result = resolve_both(ptsz, hStream, hEvent, &stream, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if ((Flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL) != 0 ||
        (Flags != 0 && !sim_stream_is_capturing(stream))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_admit(stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (Flags != 0) {
        return sim_submit_new(stream, sim_event_wait_op_new(event, sim_stream_device(stream)));
    }
    if (event->capture_id != 0 || sim_stream_is_capturing(stream)) {
        return sim_capture_wait(stream, event);
    }
    return sim_event_wait(event, stream);
}

SIM_API(cuEventQuery, SIM_HEALTHY, (CUevent hEvent))
{
    struct sim_event *event;
    CUresult result = sim_event_resolve(hEvent, &event);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_forbids_event(event);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (!sim_event_is_done(event) && sim_poll_loop_waits(event)) {
        sim_event_expect(event);
    }
    return sim_event_is_done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API(cuEventSynchronize, SIM_CONTEXT, (CUevent hEvent))
{
    struct sim_event *event;
    CUresult result = sim_event_resolve(hEvent, &event);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_forbids_event(event);
    }
    return result == CUDA_SUCCESS ? sim_event_settle(event) : result;
}

SIM_API(cuEventElapsedTime, SIM_CONTEXT, (float *pMilliseconds, CUevent hStart, CUevent hEnd))
{
    struct sim_event *start;
    struct sim_event *end;
    CUresult result = sim_event_resolve(hStart, &start);

    if (result == CUDA_SUCCESS) {
        result = sim_event_resolve(hEnd, &end);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (pMilliseconds == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_event_is_recorded(start) || !sim_event_is_recorded(end) ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!sim_event_is_done(start) || !sim_event_is_done(end)) {
        return CUDA_ERROR_NOT_READY;
    }
    *pMilliseconds = (float)(((double)sim_event_time(end) - (double)sim_event_time(start)) / 1e6);
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuEventElapsedTime_v2, cuEventElapsedTime);

/* Finds the event of cuCtxRecordEvent or cuCtxWaitEvent. Checks that the context is live and
 * without an open capture. */
static CUresult resolve_with_context(CUcontext ctx, CUevent hEvent, struct sim_event **ret_event)
{
    CUresult result;

    if (!sim_ctx_is_live(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    result = ctx->sticky != CUDA_SUCCESS ? ctx->sticky : sim_capture_forbids_context(ctx);
    return result == CUDA_SUCCESS ? sim_event_resolve(hEvent, ret_event) : result;
}

SIM_API(cuCtxRecordEvent, SIM_INITIALIZED, (CUcontext hCtx, CUevent hEvent))
{
    struct sim_fences fences = {0};
    struct sim_event *event;
    CUresult result = resolve_with_context(hCtx, hEvent, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (event->ctx != hCtx) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (hCtx->work->internal == NULL) {
        hCtx->work->internal = sim_stream_new(hCtx, SIM_STREAM_INTERNAL, CU_STREAM_NON_BLOCKING);
        if (hCtx->work->internal == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    result = sim_schedule_pending_of_context(hCtx, &fences);
    if (result == CUDA_SUCCESS) {
        result = sim_event_record_after(event, hCtx->work->internal, &fences);
    }
    sim_fences_fini(&fences);
    return result;
}

SIM_API(cuCtxWaitEvent, SIM_INITIALIZED, (CUcontext hCtx, CUevent hEvent))
{
    struct sim_event *event;
    CUresult result = resolve_with_context(hCtx, hEvent, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (event->capture_id != 0) {
        return sim_capture_refuse_event(event);
    }
    return sim_event_add_fence(event, &hCtx->work->waits);
}
