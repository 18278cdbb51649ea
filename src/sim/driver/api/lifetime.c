#include "sim/driver/api/lifetime.h"

#include "sim/driver/core/budget.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/event.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/work.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/kernels/module.h"
#include "sim/driver/memory/alloc.h"

static CUresult bring_to_life(CUcontext ctx, unsigned int flags)
{
    CUresult result = sim_budget_open_context(ctx->device);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_ctx_reset(ctx, flags);
    result = sim_work_create(ctx);
    if (result != CUDA_SUCCESS) {
        ctx->live = false;
        sim_budget_close_context(ctx->device);
    }
    return result;
}

CUresult sim_ctx_create(struct sim_device *device, unsigned int flags, CUcontext *ret_ctx)
{
    CUcontext ctx = sim_ctx_new(device);
    CUresult result;

    if (ctx == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = bring_to_life(ctx, flags);
    if (result == CUDA_SUCCESS) {
        *ret_ctx = ctx;
    }
    return result;
}

CUresult sim_ctx_reinstate_primary(struct sim_device *device)
{
    if (device->primary == NULL) {
        device->primary = sim_ctx_new(device);
        if (device->primary == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        device->primary->is_primary = true;
    }
    return bring_to_life(device->primary, device->primary_flags);
}

static void end_streams(struct sim_work_context *work)
{
    while (work->streams != NULL) {
        sim_capture_leave(work->streams);
        sim_stream_retire(work->streams);
    }
}

static void end_work(CUcontext ctx)
{
    sim_schedule_drop_context(ctx);
    while (ctx->work->events != NULL) {
        sim_event_retire(ctx->work->events);
    }
    while (ctx->work->modules != NULL) {
        sim_module_unload(ctx->work->modules);
    }
    end_streams(ctx->work);
    sim_work_destroy(ctx);
}

void sim_ctx_end(CUcontext ctx)
{
    if (ctx->ending) {
        return;
    }
    ctx->ending = true;
    end_work(ctx);
    sim_mem_ctx_release(ctx);
    sim_budget_close_context(ctx->device);
    ctx->live = false;
    ctx->ending = false;
}
