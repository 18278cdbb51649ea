#include "sim/driver/kernels/kernel_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/core/budget.h"
#include "sim/driver/core/calls.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/kernels/launch_demand.h"
#include "sim/driver/memory/content.h"
#include "sim/driver/memory/program_block.h"

/* Limits of a launch on all GPUs that can be simulated. */
#define MAX_BLOCK_THREADS 1024
#define MAX_BLOCK_Z       64
#define MAX_GRID_X        2147483647U
#define MAX_GRID_YZ       65535

/* Bytes that each thread is assumed to use at an address outside of all known blocks. */
#define BYTES_A_THREAD 16

/* A block of SEGMENT_BYTES or more may be a segment of PyTorch's own cache, which cuts tensors from
 * a segment at multiples of TENSOR_ALIGN (c10/cuda/CUDACachingAllocator.cpp). */
#define SEGMENT_BYTES ((size_t)2 << 20)
#define TENSOR_ALIGN  ((size_t)512)

struct launch_op {
    struct sim_op op;
    CUDA_KERNEL_NODE_PARAMS params;
    const struct sim_builtin *builtin; /* NULL: not built in */
    const struct sim_kernel_info *info;
    struct sim_image *image; /* owner of the info; a reference; NULL: not yet set */
    unsigned char *args;     /* the parameter buffer; NULL: not known */
    void **arg_pointers;     /* to the parameters in the buffer */
    char *name;
    enum spw_layout layout; /* where its addresses come from */
    size_t threads;
};

/* Logs whether a kernel was computed. */
static void log_outcome(const struct launch_op *self, enum sim_outcome_of_call outcome)
{
    static const char *const words[] = {
        [SIM_LEFT] = "not computed", [SIM_CLEARED] = "cleared", [SIM_COMPUTED] = "computed"};
    static char line[2048]; /* not on a stack, which may be small */

    if (sim_calls_logged()) {
        snprintf(line, sizeof(line), "  %s %s", words[outcome], self->name);
        sim_calls_log(line);
    }
}

/* True if a kernel may write through a parameter. */
static bool may_be_written(const struct sim_kernel_info *info, size_t param)
{
    return param >= 64 || (info->constant_params >> param & 1) == 0;
}

/* Marks the content of the tensor at an address as unknown. If the block that contains the address
 * is smaller than a segment, marks the memory up to the end of the block. Otherwise marks the
 * memory up to the first gap in the known content. In reused memory, such a gap may lie inside the
 * tensor. */
static void lose_tensor(CUdeviceptr address)
{
    size_t bytes = sim_program_block_bytes(address);

    if (bytes > 0 && bytes < SEGMENT_BYTES) {
        sim_mem_set_known(address, sim_program_block_rest(address), false);
    } else {
        sim_mem_lose(address, TENSOR_ALIGN);
    }
}

/* A kernel that is not computed changes no content, but its results become unknown. Any word of the
 * parameters may be an address. */
static void lose_results(const struct launch_op *self)
{
    const struct sim_kernel_info *info = self->info;

    for (size_t i = 0; i < info->param_count; i++) {
        const struct sim_param *param = &info->params[i];

        for (size_t at = -param->offset % 8; may_be_written(info, i) && at + 8 <= param->size;
             at += 8) {
            CUdeviceptr address = sim_read_u64(self->args + param->offset + at);

            if (sim_mem_is_device(address)) {
                lose_tensor(address);
            }
        }
    }
}

static void compute(const struct launch_op *self)
{
    const struct sim_call call = {.arguments = self->args,
                                  .params = self->info->params,
                                  .param_count = self->info->param_count,
                                  .blocks = (uint64_t)self->params.gridDimX *
                                            self->params.gridDimY * self->params.gridDimZ,
                                  .rows = self->params.gridDimY,
                                  .device = self->op.device};
    const struct sim_computation *computation = self->info->computation;
    enum sim_outcome_of_call outcome = SIM_LEFT;

    if (self->args != NULL && computation != NULL) {
        outcome = sim_computation_run(computation, &call);
    }
    if (self->args != NULL && outcome == SIM_LEFT) {
        lose_results(self);
    }
    log_outcome(self, outcome);
}

static enum sim_outcome launch_run(struct sim_op *op, struct sim_item *item)
{
    const struct launch_op *self = (const struct launch_op *)op;

    if (self->builtin != NULL) {
        return self->builtin->run(self->args, item);
    }
    compute(self);
    return SIM_DONE;
}

static void launch_fini(struct sim_op *op)
{
    struct launch_op *self = (struct launch_op *)op;

    free(self->args);
    free(self->arg_pointers);
    free(self->name);
    if (self->image != NULL) {
        sim_image_unref(self->image);
    }
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
    const struct spw_gpu_profile *profile = function->module->ctx->device->profile;
    unsigned long long blocks =
        (unsigned long long)params->gridDimX * params->gridDimY * params->gridDimZ;
    int per_multiprocessor =
        sim_occupancy(function, (int)(params->blockDimX * params->blockDimY * params->blockDimZ),
                      params->sharedMemBytes);

    return blocks > (unsigned long long)per_multiprocessor * (unsigned int)profile->multiprocessors
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

/* Local memory is charged for all threads that a device can hold, and stays charged for later
 * launches. */
static CUresult take_local_memory(const struct sim_function *function)
{
    CUcontext ctx = function->module->ctx;
    const struct spw_gpu_profile *profile = ctx->device->profile;
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

/* Finds the parameter buffer in the extra options. */
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

/* A zeroed buffer with the largest alignment of a parameter: 128 bytes for a CUtensorMap. */
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

/* Adds the memory that the kernel is assumed to use at an address, for simulated time. If a block
 * of the program contains the address, this is the rest of the block. Otherwise it is 16 bytes for
 * each thread, as in kernels that pass over an array once. A guessed address outside of all blocks
 * is ignored, unless no block is known. */
static CUresult add_reach(struct launch_op *self, CUdeviceptr address, bool guessed)
{
    size_t size = sim_program_block_rest(address);

    if (size == 0 && guessed && sim_program_block_any()) {
        return CUDA_SUCCESS;
    }
    size = size > 0 ? size : self->threads * BYTES_A_THREAD;
    return sim_op_add_reach(&self->op, (struct sim_reach){address, size});
}

/* Names the device memory that words point to. An address directly after mapped memory is left out,
 * because it is the end of an array and no kernel accesses it. */
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
        if (result == CUDA_SUCCESS && sim_clock_is_on()) {
            result = add_reach(self, address, /* guessed */ false);
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

/* Finds words of a struct that may be addresses. Such a word may also be a number or a stale
 * address, so it counts for simulated time only. */
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

/* The number of addresses that a parameter is known to consist of. */
static size_t words_of(const struct sim_kernel_info *info, size_t index)
{
    return index < info->declared_count ? info->declared[index].words : info->params[index].is_word;
}

/* True if a parameter may be a struct: its place is known, but not its type. */
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
    for (size_t i = 0; i < count && result == CUDA_SUCCESS && sim_clock_is_on(); i++) {
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

/* Equal for launches of the same kernel with the same grid, and not 0. */
static uint64_t key_of(const struct sim_kernel_info *info, const CUDA_KERNEL_NODE_PARAMS *params)
{
    uint64_t key = (uintptr_t)info;

    key = key * 0x9e3779b97f4a7c15ULL + params->gridDimX;
    key = key * 0x9e3779b97f4a7c15ULL + params->gridDimY;
    key = key * 0x9e3779b97f4a7c15ULL + params->gridDimZ;
    return key | 1;
}

static CUresult fill_in(struct launch_op *self, const struct sim_function *function)
{
    const struct sim_kernel_info *info = function->info;
    void **given = self->params.kernelParams;
    CUresult result = copy_params(self, info);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    self->op.key = key_of(info, &self->params);
    self->params.func = function->handle;
    self->params.kern = NULL;
    self->params.ctx = function->module->ctx;
    self->name = strdup(info->name);
    self->op.label = self->name;
    self->builtin = info->builtin;
    self->info = info;
    self->image = sim_image_ref(function->module->image);
    self->layout = info->layout;
    if (self->builtin != NULL) {
        return self->builtin->name_memory(&self->op, self->args);
    }
    self->threads = threads_of(&self->params);
    if (self->args != NULL) {
        self->op.demand = sim_launch_demand(info, &self->params, self->args, self->op.device);
    } else {
        self->op.demand = (struct sim_demand){.work = SIM_WORK_OTHER, .guessed = 1};
    }
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

enum spw_layout sim_launch_layout(const struct sim_op *op)
{
    return ((const struct launch_op *)op)->layout;
}

bool sim_launch_computes(const struct sim_op *op)
{
    return sim_builtin_computes(((const struct launch_op *)op)->builtin);
}
