#include "sim/driver/exec/work.h"

#include <stdlib.h>

#include "sim/driver/core/budget.h"
#include "sim/driver/core/calls.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/meter.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/memory/mempool.h"

static struct sim_work_context *contexts;

struct sim_work_context *sim_work_first(void)
{
    return contexts;
}

CUresult sim_work_create(CUcontext ctx)
{
    struct sim_work_context *work = calloc(1, sizeof(*work));

    if (work == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ctx->work = work;
    work->legacy = sim_stream_new(ctx, SIM_STREAM_LEGACY, CU_STREAM_DEFAULT);
    if (work->legacy == NULL) {
        ctx->work = NULL;
        free(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->ctx = ctx;
    work->next = contexts;
    contexts = work;
    return CUDA_SUCCESS;
}

void sim_work_destroy(CUcontext ctx)
{
    struct sim_work_context *work = ctx->work;
    struct sim_work_context **place = &contexts;

    sim_fences_fini(&work->waits);
    sim_budget_refund(ctx->device, work->local_bytes, SIM_USE_OWN);
    while (*place != work) {
        place = &(*place)->next;
    }
    *place = work->next;
    ctx->work = NULL;
    free(work);
}

/* Waits for the fences and frees them. */
static void wait_and_drop(struct sim_fences *fences, struct sim_device *device)
{
    sim_schedule_wait_all(fences);
    sim_fences_fini(fences);
    sim_mempool_synchronized(device);
}

CUresult sim_work_drain_device(struct sim_device *device)
{
    struct sim_fences fences = {0};
    CUresult result = sim_schedule_pending_of_device(device, &fences);
    CUcontext ctx;

    sim_meter_host_drains(device->ordinal);
    wait_and_drop(&fences, device);
    ctx = sim_ctx_current();
    if (result != CUDA_SUCCESS || ctx == NULL) {
        return result;
    }
    return ctx->sticky;
}

CUresult sim_work_drain_context(CUcontext ctx)
{
    struct sim_fences fences = {0};
    CUresult result = sim_schedule_pending_of_context(ctx, &fences);

    sim_meter_host_drains(ctx->device->ordinal);
    wait_and_drop(&fences, ctx->device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    return sim_ctx_is_live(ctx) ? ctx->sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void sim_work_check_unused(uint64_t start, uint64_t size, uint64_t devices, const char *function)
{
    static bool said;
    const struct sim_op *user = sim_schedule_user(start, (size_t)size);

    if (user == NULL) {
        return;
    }
    sim_warn_once(&said,
                  "%s of %#llx while queued work uses it (%s%s%s on device %d): the work fails "
                  "with an illegal address",
                  function, (unsigned long long)start, user->class->name,
                  user->label != NULL ? " " : "", user->label != NULL ? user->label : "",
                  user->device);
    sim_ctx_fail_devices(devices, CUDA_ERROR_ILLEGAL_ADDRESS);
}
