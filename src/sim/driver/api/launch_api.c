/* cuLaunchKernel and its relatives. */
#include <stdio.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/spin.h"
#include "sim/driver/exec/event.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/kernels/kernel_launch.h"

/* Launches so far. */
static unsigned long long launches[SPW_LAYOUT_COUNT];

SIM_EXPORT unsigned long long spillway_sim_launches(unsigned long long *ret_checked)
{
    struct spillway_sim_layouts by_layout;
    unsigned long long checked;

    spillway_sim_layouts(&by_layout);
    checked = by_layout.builtin + by_layout.ptx + by_layout.name + by_layout.code;
    if (ret_checked != NULL) {
        *ret_checked = checked;
    }
    return checked + by_layout.structs + by_layout.unknown;
}

SIM_EXPORT void spillway_sim_layouts(struct spillway_sim_layouts *ret_launches)
{
    sim_lock();
    ret_launches->unknown = launches[SPW_LAYOUT_UNKNOWN];
    ret_launches->builtin = launches[SPW_LAYOUT_BUILTIN];
    ret_launches->ptx = launches[SPW_LAYOUT_PTX];
    ret_launches->name = launches[SPW_LAYOUT_NAME];
    ret_launches->code = launches[SPW_LAYOUT_CODE];
    ret_launches->structs = launches[SPW_LAYOUT_STRUCTS];
    sim_unlock();
}

/* A list of ranges of memory for the log, split over several lines if needed. */
struct uses {
    char head[64];
    char line[800];
    size_t length;
};

static void log_uses(struct uses *uses)
{
    if (uses->length > 0) {
        sim_calls_log(uses->line);
    }
    uses->length = 0;
}

static void add_use(struct uses *uses, char kind, CUdeviceptr address, size_t size)
{
    const size_t most = 48; /* the longest entry */

    if (sizeof(uses->line) - uses->length <= most) {
        log_uses(uses);
    }
    if (uses->length == 0) {
        uses->length = (size_t)snprintf(uses->line, sizeof(uses->line), "%s", uses->head);
    }
    uses->length += (size_t)snprintf(uses->line + uses->length, sizeof(uses->line) - uses->length,
                                     " %c%#llx+%zu", kind, (unsigned long long)address, size);
}

/* With simulated time, logs the memory that the operation uses, before the line of the call. */
static void note_uses(const struct sim_stream *stream, const struct sim_op *op)
{
    unsigned long long number = stream->submitted + 1;
    struct uses uses = {.length = 0};

    if (!sim_calls_logged() || !sim_clock_is_on()) {
        return;
    }
    sim_note("item=%llu.%llu", stream->id, number);
    snprintf(uses.head, sizeof(uses.head), "  uses %llu.%llu", stream->id, number);
    for (size_t i = 0; i < op->reach_count; i++) {
        add_use(&uses, 'r', op->reaches[i].address, op->reaches[i].size);
    }
    for (size_t i = 0; op->reaches == NULL && i < op->span_count; i++) {
        const struct sim_span *span = &op->spans[i];

        add_use(&uses, span->write ? 'w' : 'r', span->address, span->size);
    }
    log_uses(&uses);
}

/* Launches on the stream. As on a real device, a bad address is not an error of the launch but sets
 * the context's sticky error. */
static CUresult launch(struct sim_stream *stream, const CUDA_KERNEL_NODE_PARAMS *params,
                       bool cooperative)
{
    struct sim_op *op;
    CUresult result = sim_capture_admit(stream);

    if (result == CUDA_SUCCESS) {
        result = sim_launch_op_new(params, stream->ctx, cooperative, &op);
    }
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS) {
        sim_ctx_fail(stream->ctx, result);
        return CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_note("kernel=%.512s", op->label);
    note_uses(stream, op);
    launches[sim_launch_layout(op)]++;
    sim_spin_launched();
    sim_run_record_launched(stream->ctx->device, sim_launch_layout(op), sim_launch_computes(op));
    if (!sim_stream_is_capturing(stream) && sim_op_check(op) != CUDA_SUCCESS) {
        sim_ctx_fail(stream->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    return sim_submit_new(stream, op);
}

#define LAUNCH_PARAMS                                                                              \
    CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,             \
        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,                    \
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams
#define LAUNCH_ARGS                                                                                \
    f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,     \
        kernelParams

static CUresult launch_plain(bool ptsz, bool cooperative, LAUNCH_PARAMS, void **extra)
{
    CUDA_KERNEL_NODE_PARAMS params = {
        .func = f,
        .gridDimX = gridDimX,
        .gridDimY = gridDimY,
        .gridDimZ = gridDimZ,
        .blockDimX = blockDimX,
        .blockDimY = blockDimY,
        .blockDimZ = blockDimZ,
        .sharedMemBytes = sharedMemBytes,
        .kernelParams = kernelParams,
        .extra = extra,
    };
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    return result == CUDA_SUCCESS ? launch(stream, &params, cooperative) : result;
}

SIM_API_PTSZ(cuLaunchKernel, SIM_CONTEXT, (LAUNCH_PARAMS, void **extra))
{
    return launch_plain(ptsz, false, LAUNCH_ARGS, extra);
}

SIM_API_PTSZ(cuLaunchCooperativeKernel, SIM_CONTEXT, (LAUNCH_PARAMS))
{
    return launch_plain(ptsz, true, LAUNCH_ARGS, NULL);
}

#undef LAUNCH_PARAMS
#undef LAUNCH_ARGS

/* Records the event of a launch attribute. */
static CUresult record_event(struct sim_stream *stream, CUevent handle)
{
    struct sim_event *event;
    CUresult result = sim_event_resolve(handle, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    return sim_stream_is_capturing(stream) ? sim_capture_record(stream, event)
                                           : sim_event_record(event, stream);
}

static CUresult apply_events(struct sim_stream *stream, const CUlaunchConfig *config)
{
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        CUresult result = CUDA_SUCCESS;

        if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
            result = record_event(stream, attribute->value.programmaticEvent.event);
        } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
            result = record_event(stream, attribute->value.launchCompletionEvent.event);
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

static bool is_cooperative(const CUlaunchConfig *config)
{
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            return config->attrs[i].value.cooperative != 0;
        }
    }
    return false;
}

/* Clusters must divide the grid. */
static bool has_valid_cluster(const CUlaunchConfig *config)
{
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];

        if (attribute->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            continue;
        }
        if (attribute->value.clusterDim.x == 0 || attribute->value.clusterDim.y == 0 ||
            attribute->value.clusterDim.z == 0 ||
            config->gridDimX % attribute->value.clusterDim.x != 0 ||
            config->gridDimY % attribute->value.clusterDim.y != 0 ||
            config->gridDimZ % attribute->value.clusterDim.z != 0) {
            return false;
        }
    }
    return true;
}

SIM_API_PTSZ(cuLaunchKernelEx, SIM_CONTEXT,
             (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra))
{
    CUDA_KERNEL_NODE_PARAMS params = {.func = f, .kernelParams = kernelParams, .extra = extra};
    struct sim_stream *stream;
    CUresult result;

    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL) ||
        !has_valid_cluster(config)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    params.gridDimX = config->gridDimX;
    params.gridDimY = config->gridDimY;
    params.gridDimZ = config->gridDimZ;
    params.blockDimX = config->blockDimX;
    params.blockDimY = config->blockDimY;
    params.blockDimZ = config->blockDimZ;
    params.sharedMemBytes = config->sharedMemBytes;
    result = sim_stream_resolve(config->hStream, ptsz, &stream);
    if (result == CUDA_SUCCESS) {
        result = launch(stream, &params, is_cooperative(config));
    }
    return result == CUDA_SUCCESS ? apply_events(stream, config) : result;
}
