#include "sim/driver/core/context.h"

#include <stdlib.h>
#include <string.h>

/* A program that pops each context that it pushes needs fewer. */
#define SIM_STACK_DEPTH 256

static CUcontext contexts;
static unsigned long long last_id;

static _Thread_local CUcontext stack[SIM_STACK_DEPTH];
static _Thread_local unsigned int stack_depth;

CUcontext sim_ctx_current(void)
{
    return stack_depth > 0 ? stack[stack_depth - 1] : NULL;
}

CUresult sim_ctx_require(CUcontext *ret_ctx)
{
    CUcontext ctx = sim_ctx_current();

    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!ctx->live || ctx->ending) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (ctx->sticky != CUDA_SUCCESS) {
        return ctx->sticky;
    }
    *ret_ctx = ctx;
    return CUDA_SUCCESS;
}

bool sim_ctx_is_live(CUcontext ctx)
{
    for (CUcontext known = contexts; known != NULL; known = known->next) {
        if (known == ctx) {
            return known->live && !known->ending;
        }
    }
    return false;
}

void sim_ctx_fail(CUcontext ctx, CUresult code)
{
    if (ctx->sticky == CUDA_SUCCESS) {
        ctx->sticky = code;
    }
}

void sim_ctx_fail_devices(uint64_t devices, CUresult code)
{
    for (CUcontext ctx = contexts; ctx != NULL; ctx = ctx->next) {
        if (ctx->live && (devices >> ctx->device->ordinal & 1) != 0) {
            sim_ctx_fail(ctx, code);
        }
    }
}

bool sim_ctx_peers_enabled(const struct sim_device *device, const struct sim_device *owner)
{
    for (CUcontext ctx = contexts; ctx != NULL; ctx = ctx->next) {
        if (ctx->live && ctx->device == device && (ctx->peers >> owner->ordinal & 1) != 0) {
            return true;
        }
    }
    return false;
}

/* The default limits of current drivers, as cuCtxGetLimit reports them on a fresh context. */
static void set_defaults(CUcontext ctx)
{
    memset(ctx->limits, 0, sizeof(ctx->limits));
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = (size_t)1 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    ctx->sticky = CUDA_SUCCESS;
    ctx->peers = 0;
    ctx->refs = 1;
    ctx->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    ctx->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
}

CUcontext sim_ctx_new(struct sim_device *device)
{
    CUcontext ctx = calloc(1, sizeof(*ctx));

    if (ctx != NULL) {
        ctx->device = device;
        ctx->next = contexts;
        contexts = ctx;
    }
    return ctx;
}

void sim_ctx_reset(CUcontext ctx, unsigned int flags)
{
    set_defaults(ctx);
    ctx->flags = flags;
    ctx->id = ++last_id;
    ctx->live = true;
}

CUresult sim_ctx_push(CUcontext ctx)
{
    if (stack_depth == SIM_STACK_DEPTH) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stack[stack_depth++] = ctx;
    return CUDA_SUCCESS;
}

CUcontext sim_ctx_pop(void)
{
    return stack_depth > 0 ? stack[--stack_depth] : NULL;
}

CUresult sim_ctx_set(CUcontext ctx)
{
    sim_ctx_pop();
    return ctx != NULL ? sim_ctx_push(ctx) : CUDA_SUCCESS;
}

uint64_t sim_thread_id(void)
{
    static uint64_t last;
    static _Thread_local uint64_t own;

    if (own == 0) {
        own = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    }
    return own;
}
