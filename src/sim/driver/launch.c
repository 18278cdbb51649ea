#include "sim/driver/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/calls.h"
#include "sim/driver/capture.h"
#include "sim/driver/control.h"
#include "sim/driver/entry.h"
#include "sim/driver/event.h"
#include "sim/driver/extent.h"
#include "sim/driver/fit.h"
#include "sim/driver/memory.h"
#include "sim/driver/submit.h"
#include "sim/driver/timing.h"
#include "sim/driver/work_context.h"

/* Limits of a launch on all GPUs that can be simulated. */
#define MAX_BLOCK_THREADS 1024
#define MAX_BLOCK_Z       64
#define MAX_GRID_X        2147483647U
#define MAX_GRID_YZ       65535

/* What a thread of a kernel is taken to use behind an address of which nothing is known. */
#define BYTES_A_THREAD 16

struct launch_op {
    struct sim_op op;
    CUDA_KERNEL_NODE_PARAMS params;
    const struct sim_builtin *builtin; /* NULL: no effect */
    unsigned char *args;               /* the parameter buffer; NULL: not known */
    void **arg_pointers;               /* to each parameter in it */
    char *name;
    enum spw_layout layout; /* by which its addresses were found */
    size_t threads;
};

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

static enum sim_outcome launch_run(struct sim_op *op, struct sim_item *item)
{
    const struct launch_op *self = (const struct launch_op *)op;

    return self->builtin == NULL ? SIM_DONE : self->builtin->run(self->args, item);
}

static void launch_fini(struct sim_op *op)
{
    struct launch_op *self = (struct launch_op *)op;

    free(self->args);
    free(self->arg_pointers);
    free(self->name);
}

static const struct sim_op_class launch_class = {
    .name = "kernel",
    .node_type = CU_GRAPH_NODE_TYPE_KERNEL,
    .run = launch_run,
    .fini = launch_fini,
};

static CUresult check_dimensions(const CUDA_KERNEL_NODE_PARAMS *params,
                                 const struct sim_function *function)
{
    unsigned long long threads =
        (unsigned long long)params->blockDimX * params->blockDimY * params->blockDimZ;

    if (params->gridDimX == 0 || params->gridDimY == 0 || params->gridDimZ == 0 || threads == 0 ||
        params->gridDimX > MAX_GRID_X || params->gridDimY > MAX_GRID_YZ ||
        params->gridDimZ > MAX_GRID_YZ || params->blockDimX > MAX_BLOCK_THREADS ||
        params->blockDimY > MAX_BLOCK_THREADS || params->blockDimZ > MAX_BLOCK_Z ||
        threads > MAX_BLOCK_THREADS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (params->sharedMemBytes >
        (unsigned int)function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return threads > function->info->max_threads ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                 : CUDA_SUCCESS;
}

/* All blocks of a cooperative launch must be resident at once. */
static CUresult check_cooperative(const CUDA_KERNEL_NODE_PARAMS *params,
                                  const struct sim_function *function)
{
    const struct sim_profile *profile = function->module->ctx->device->profile;
    unsigned long long blocks =
        (unsigned long long)params->gridDimX * params->gridDimY * params->gridDimZ;
    int per_multiprocessor =
        sim_occupancy(function, (int)(params->blockDimX * params->blockDimY * params->blockDimZ),
                      params->sharedMemBytes);

    return blocks > (unsigned long long)per_multiprocessor * (unsigned int)profile->multiprocessors
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

/* Local memory is taken for all threads a device can hold, and kept for later launches. */
static CUresult take_local_memory(const struct sim_function *function)
{
    CUcontext ctx = function->module->ctx;
    const struct sim_profile *profile = ctx->device->profile;
    size_t threads = (size_t)profile->multiprocessors * (size_t)profile->threads_per_multiprocessor;
    size_t bytes = function->info->local_bytes * threads;
    CUresult result;

    bytes = (bytes + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE;
    if (bytes <= ctx->work->local_bytes) {
        return CUDA_SUCCESS;
    }
    result = sim_budget_charge(ctx->device, bytes - ctx->work->local_bytes, SIM_USE_OWN);
    if (result == CUDA_SUCCESS) {
        ctx->work->local_bytes = bytes;
    }
    return result;
}

/* Finds the parameter buffer among the extra options. */
static CUresult find_buffer(void **extra, const void **ret_buffer, size_t *ret_size)
{
    *ret_buffer = NULL;
    *ret_size = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            *ret_buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            *ret_size = *(const size_t *)extra[i + 1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_from_buffer(struct launch_op *self, const struct sim_kernel_info *info)
{
    const void *buffer;
    size_t size;
    CUresult result = find_buffer(self->params.extra, &buffer, &size);

    if (result != CUDA_SUCCESS || buffer == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(self->args, buffer, size < info->param_bytes ? size : info->param_bytes);
    return CUDA_SUCCESS;
}

/* Zeros, aligned as a parameter may have to be: a CUtensorMap to 128 bytes. */
static void *new_args(size_t bytes)
{
    void *args;

    if (posix_memalign(&args, 128, bytes + 1) != 0) {
        return NULL;
    }
    return memset(args, 0, bytes + 1);
}

/* Copies the parameters of a kernel whose layout is known. */
static CUresult copy_params(struct launch_op *self, const struct sim_kernel_info *info)
{
    void **given = self->params.kernelParams;

    if (given != NULL && self->params.extra != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    self->params.kernelParams = NULL;
    if (!info->params_known) {
        self->params.extra = NULL;
        return CUDA_SUCCESS;
    }
    self->args = new_args(info->param_bytes);
    self->arg_pointers = calloc(info->param_count + 1, sizeof(void *));
    if (self->args == NULL || self->arg_pointers == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < info->param_count; i++) {
        self->arg_pointers[i] = self->args + info->params[i].offset;
        if (given != NULL) {
            memcpy(self->arg_pointers[i], given[i], info->params[i].size);
        }
    }
    if (given == NULL && info->param_count > 0) {
        CUresult result =
            self->params.extra == NULL ? CUDA_ERROR_INVALID_VALUE : copy_from_buffer(self, info);

        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    self->params.extra = NULL;
    self->params.kernelParams = self->arg_pointers;
    return CUDA_SUCCESS;
}

/* Notes what the kernel is taken to use behind an address, for simulated time: all the rest of the
 * program's block, or without one 16 bytes a thread, as kernels do that go through an array once.
 * An address that is only guessed counts in a block, if any is known. */
static CUresult add_reach(struct launch_op *self, CUdeviceptr address, bool guessed)
{
    size_t size = sim_extent_rest(address);

    if (size == 0 && guessed && sim_extent_any()) {
        return CUDA_SUCCESS;
    }
    size = size > 0 ? size : self->threads * BYTES_A_THREAD;
    return sim_op_add_reach(&self->op, (struct sim_reach){address, size});
}

/* Names what words point to in device memory. The end of an array is no address that a kernel would
 * use. */
static CUresult name_pointers(struct launch_op *self, const void *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CUdeviceptr address;
        CUresult result;

        memcpy(&address, (const CUdeviceptr *)words + i, sizeof(address));
        if (!sim_mem_is_device(address) ||
            (sim_mem_check(address, 1, self->op.device, false) != CUDA_SUCCESS &&
             sim_mem_check(address - 1, 1, self->op.device, false) == CUDA_SUCCESS)) {
            continue;
        }
        result = sim_op_add_span(&self->op, (struct sim_span){address, 1, false, false});
        if (result == CUDA_SUCCESS && sim_timing_is_on()) {
            result = add_reach(self, address, /* guessed */ false);
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

/* What words inside a struct point to. Any of them may be a number, or left over from something
 * else, so that they count for simulated time only. */
static CUresult guess_pointers(struct launch_op *self, const unsigned char *param, size_t size)
{
    for (size_t at = 0; at + sizeof(CUdeviceptr) <= size; at += sizeof(CUdeviceptr)) {
        CUdeviceptr address;
        CUresult result;

        memcpy(&address, param + at, sizeof(address));
        if (!sim_mem_is_device(address) ||
            sim_mem_check(address, 1, self->op.device, false) != CUDA_SUCCESS) {
            continue;
        }
        result = add_reach(self, address, /* guessed */ true);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

/* The addresses that a parameter is known to consist of. */
static size_t words_of(const struct sim_kernel_info *info, size_t index)
{
    return index < info->declared_count ? info->declared[index].words : info->params[index].is_word;
}

/* Whether a parameter is a struct, as far as is known. */
static bool may_be_struct(const struct sim_kernel_info *info, size_t index)
{
    return info->params_known && words_of(info, index) == 0 &&
           (index >= info->declared_count || info->declared[index].bytes == 0);
}

/* Names the memory that the arguments point to. */
static CUresult name_arguments(struct launch_op *self, const struct sim_kernel_info *info,
                               void **given)
{
    size_t count = info->params_known ? info->param_count : info->declared_count;
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = name_pointers(self, given[i], words_of(info, i));
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS && sim_timing_is_on(); i++) {
        if (may_be_struct(info, i)) {
            result = guess_pointers(self, given[i], info->params[i].size);
        }
    }
    return result;
}

static size_t threads_of(const CUDA_KERNEL_NODE_PARAMS *params)
{
    return (size_t)params->gridDimX * params->gridDimY * params->gridDimZ * params->blockDimX *
           params->blockDimY * params->blockDimZ;
}

static CUresult fill_in(struct launch_op *self, const struct sim_function *function)
{
    const struct sim_kernel_info *info = function->info;
    void **given = self->params.kernelParams;
    CUresult result = copy_params(self, info);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    self->params.func = function->handle;
    self->params.kern = NULL;
    self->params.ctx = function->module->ctx;
    self->name = strdup(info->name);
    self->op.label = self->name;
    self->builtin = info->builtin;
    self->layout = info->layout;
    if (self->builtin != NULL) {
        return self->builtin->name_memory(&self->op, self->args);
    }
    self->threads = threads_of(&self->params);
    given = info->params_known ? self->arg_pointers : given;
    if (info->layout == SPW_LAYOUT_UNKNOWN || given == NULL) {
        self->layout = SPW_LAYOUT_UNKNOWN;
        return CUDA_SUCCESS;
    }
    return name_arguments(self, info, given);
}

CUresult sim_launch_op_new(const CUDA_KERNEL_NODE_PARAMS *params, CUcontext ctx, bool cooperative,
                           struct sim_op **ret_op)
{
    CUfunction handle = params->func != NULL ? params->func : (CUfunction)params->kern;
    struct sim_function *function;
    struct launch_op *self;
    CUresult result = sim_function_resolve(handle, ctx, &function);

    if (result == CUDA_SUCCESS && function->module->ctx != ctx) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) {
        result = check_dimensions(params, function);
    }
    if (result == CUDA_SUCCESS && cooperative) {
        result = check_cooperative(params, function);
    }
    if (result == CUDA_SUCCESS) {
        result = take_local_memory(function);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    self = sim_op_new(&launch_class, sizeof(*self), ctx->device->ordinal);
    if (self == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    self->params = *params;
    result = fill_in(self, function);
    if (result != CUDA_SUCCESS) {
        sim_op_unref(&self->op);
        return result;
    }
    *ret_op = &self->op;
    return CUDA_SUCCESS;
}

const CUDA_KERNEL_NODE_PARAMS *sim_launch_of_op(const struct sim_op *op)
{
    return &((const struct launch_op *)op)->params;
}

/* Words that go into the log, in as many lines as it takes. */
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
    const size_t most = 48; /* of one word */

    if (sizeof(uses->line) - uses->length <= most) {
        log_uses(uses);
    }
    if (uses->length == 0) {
        uses->length = (size_t)snprintf(uses->line, sizeof(uses->line), "%s", uses->head);
    }
    uses->length += (size_t)snprintf(uses->line + uses->length, sizeof(uses->line) - uses->length,
                                     " %c%#llx+%zu", kind, (unsigned long long)address, size);
}

/* With simulated time: what the log needs to tell who uses which memory when. The uses are in lines
 * before that of the call. */
static void note_uses(const struct sim_stream *stream, const struct sim_op *op)
{
    unsigned long long number = stream->submitted + 1;
    struct uses uses = {.length = 0};

    if (!sim_calls_logged() || !sim_timing_is_on()) {
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

/* A launch on the stream. Like a real device it reports a bad address not by itself, but by the
 * context's sticky error. */
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
    launches[((const struct launch_op *)op)->layout]++;
    sim_fit_launched(stream->ctx->device, ((const struct launch_op *)op)->layout,
                     sim_builtin_computes(((const struct launch_op *)op)->builtin));
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

SIM_API_PTSZ(cuLaunchKernel, SIM_CONTEXT, (LAUNCH_PARAMS, void **extra), (LAUNCH_ARGS, extra))
{
    return launch_plain(ptsz, false, LAUNCH_ARGS, extra);
}

SIM_API_PTSZ(cuLaunchCooperativeKernel, SIM_CONTEXT, (LAUNCH_PARAMS), (LAUNCH_ARGS))
{
    return launch_plain(ptsz, true, LAUNCH_ARGS, NULL);
}

#undef LAUNCH_PARAMS
#undef LAUNCH_ARGS

/* The attributes that ask for an event to be recorded with the launch. */
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
             (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
             (config, f, kernelParams, extra))
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
