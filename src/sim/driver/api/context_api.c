/* The functions on contexts, cuCtx*. */
#include "sim/driver/api/entry.h"
#include "sim/driver/api/lifetime.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/work.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/memory/mempool.h"

/* cuCtxGetApiVersion: contexts of cuCtxCreate_v2 and later have reported this since 2010. */
#define SIM_CONTEXT_API_VERSION 3020

static CUresult create(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct sim_device *device = sim_device_get(dev);
    CUcontext ctx;
    CUresult result;

    if (pctx == NULL || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    result = sim_ctx_create(device, flags, &ctx);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_ctx_push(ctx);
    if (result != CUDA_SUCCESS) {
        sim_ctx_end(ctx);
        return result;
    }
    *pctx = ctx;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxCreate, SIM_INITIALIZED, (CUcontext * pctx, unsigned int flags, CUdevice dev))
{
    return create(pctx, flags, dev);
}

SIM_API_SAME(cuCtxCreate_v2, cuCtxCreate);

/* cuda.h: execution affinity is supported under MPS only, which the simulator does not have. */
SIM_API(cuCtxCreate_v3, SIM_INITIALIZED,
        (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
         CUdevice dev))
{
    if (paramsArray != NULL && numParams > 0) {
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    }
    return create(pctx, flags, dev);
}

SIM_API(cuCtxCreate_v4, SIM_INITIALIZED,
        (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev))
{
    if (ctxCreateParams != NULL && ctxCreateParams->cigParams != NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (ctxCreateParams != NULL && ctxCreateParams->execAffinityParams != NULL &&
        ctxCreateParams->numExecAffinityParams > 0) {
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    }
    return create(pctx, flags, dev);
}

/* cuda.h: also pops the context if it is current to the calling thread; refuses primary contexts.
 */
static CUresult destroy(CUcontext ctx)
{
    if (!sim_ctx_is_live(ctx) || ctx->is_primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    sim_ctx_end(ctx);
    if (sim_ctx_current() == ctx) {
        sim_ctx_pop();
    }
    return CUDA_SUCCESS;
}

SIM_API(cuCtxDestroy, SIM_INITIALIZED, (CUcontext ctx))
{
    return destroy(ctx);
}

SIM_API_SAME(cuCtxDestroy_v2, cuCtxDestroy);

SIM_API(cuCtxAttach, SIM_CONTEXT, (CUcontext * pctx, unsigned int flags))
{
    CUcontext ctx = sim_ctx_current();

    if (pctx == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ctx->refs++;
    *pctx = ctx;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxDetach, SIM_CONTEXT, (CUcontext ctx))
{
    if (ctx != sim_ctx_current() || ctx->is_primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    ctx->refs--;
    return ctx->refs == 0 ? destroy(ctx) : CUDA_SUCCESS;
}

SIM_API(cuCtxPushCurrent, SIM_INITIALIZED, (CUcontext ctx))
{
    return sim_ctx_is_live(ctx) ? sim_ctx_push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API_SAME(cuCtxPushCurrent_v2, cuCtxPushCurrent);

SIM_API(cuCtxPopCurrent, SIM_INITIALIZED, (CUcontext * pctx))
{
    CUcontext ctx = sim_ctx_pop();

    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (pctx != NULL) {
        *pctx = ctx;
    }
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuCtxPopCurrent_v2, cuCtxPopCurrent);

SIM_API(cuCtxSetCurrent, SIM_INITIALIZED, (CUcontext ctx))
{
    if (ctx != NULL && !sim_ctx_is_live(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return sim_ctx_set(ctx);
}

SIM_API(cuCtxGetCurrent, SIM_INITIALIZED, (CUcontext * pctx))
{
    if (pctx == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pctx = sim_ctx_current();
    return CUDA_SUCCESS;
}

/* The context of the handle; for NULL, the current context. Ignores the context's sticky error. */
static CUresult given_or_current(CUcontext handle, CUcontext *ret_ctx)
{
    CUcontext ctx = handle != NULL ? handle : sim_ctx_current();

    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!sim_ctx_is_live(ctx)) {
        return handle != NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *ret_ctx = ctx;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device, CUcontext handle)
{
    CUcontext ctx;
    CUresult result;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = given_or_current(handle, &ctx);
    if (result == CUDA_SUCCESS) {
        *device = ctx->device->ordinal;
    }
    return result;
}

SIM_API(cuCtxGetDevice, SIM_INITIALIZED, (CUdevice * device))
{
    return get_device(device, NULL);
}

SIM_API(cuCtxGetDevice_v2, SIM_INITIALIZED, (CUdevice * device, CUcontext ctx))
{
    return get_device(device, ctx);
}

SIM_API(cuCtxGetId, SIM_INITIALIZED, (CUcontext handle, unsigned long long *ctxId))
{
    CUcontext ctx;
    CUresult result;

    if (ctxId == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = given_or_current(handle, &ctx);
    if (result == CUDA_SUCCESS) {
        *ctxId = ctx->id;
    }
    return result;
}

/* Waits for the context's work; the device's pools then release memory above their thresholds. */
static CUresult synchronize(CUcontext handle)
{
    CUcontext ctx;
    CUresult result = sim_capture_unsafe();

    if (result == CUDA_SUCCESS) {
        result = given_or_current(handle, &ctx);
    }
    if (result == CUDA_SUCCESS) {
        result = sim_capture_forbids_context(ctx);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_work_drain_context(ctx);
    if (result == CUDA_SUCCESS) {
        sim_mempool_synchronized(ctx->device);
    }
    return result;
}

SIM_API(cuCtxSynchronize, SIM_CONTEXT, (void))
{
    return synchronize(NULL);
}

SIM_API(cuCtxSynchronize_v2, SIM_HEALTHY, (CUcontext ctx))
{
    return synchronize(ctx);
}

SIM_API(cuCtxGetFlags, SIM_CONTEXT, (unsigned int *flags))
{
    if (flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = sim_ctx_current()->flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetFlags, SIM_CONTEXT, (unsigned int flags))
{
    if ((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_ctx_current()->flags = flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetLimit, SIM_CONTEXT, (CUlimit limit, size_t value))
{
    CUcontext ctx = sim_ctx_current();

    switch (limit) {
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
        if (ctx->device->profile->major >= 9) {
            return CUDA_ERROR_UNSUPPORTED_LIMIT;
        }
        break;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        value = value > 128 ? 128 : value;
        break;
    case CU_LIMIT_STACK_SIZE:
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
        break;
    default:
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    ctx->limits[limit] = value;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetLimit, SIM_CONTEXT, (size_t * pvalue, CUlimit limit))
{
    if (pvalue == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((unsigned int)limit >= CU_LIMIT_MAX) {
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    *pvalue = sim_ctx_current()->limits[limit];
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCacheConfig, SIM_CONTEXT, (CUfunc_cache * pconfig))
{
    if (pconfig == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pconfig = sim_ctx_current()->cache_config;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCacheConfig, SIM_CONTEXT, (CUfunc_cache config))
{
    sim_ctx_current()->cache_config = config;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetSharedMemConfig, SIM_CONTEXT, (CUsharedconfig * pConfig))
{
    if (pConfig == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pConfig = sim_ctx_current()->shared_config;
    return CUDA_SUCCESS;
}

/* cuda.h: no effect on devices with a fixed bank size. All profiles describe such devices. */
SIM_API(cuCtxSetSharedMemConfig, SIM_CONTEXT, (CUsharedconfig config))
{
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetApiVersion, SIM_INITIALIZED, (CUcontext handle, unsigned int *version))
{
    CUcontext ctx;
    CUresult result;

    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = given_or_current(handle, &ctx);
    if (result == CUDA_SUCCESS) {
        *version = SIM_CONTEXT_API_VERSION;
    }
    return result;
}

/* Lower numbers are more urgent; 0 to -5 on current GPUs. */
SIM_API(cuCtxGetStreamPriorityRange, SIM_CONTEXT, (int *leastPriority, int *greatestPriority))
{
    if (leastPriority != NULL) {
        *leastPriority = 0;
    }
    if (greatestPriority != NULL) {
        *greatestPriority = -5;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuCtxResetPersistingL2Cache, SIM_CONTEXT, (void))
{
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetExecAffinity, SIM_CONTEXT,
        (CUexecAffinityParam * pExecAffinity, CUexecAffinityType type))
{
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

/* The peer access functions, with cuda.h's error codes. */
SIM_API(cuCtxEnablePeerAccess, SIM_CONTEXT, (CUcontext peerContext, unsigned int Flags))
{
    CUcontext ctx = sim_ctx_current();
    uint64_t bit;

    if (Flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_ctx_is_live(peerContext) || peerContext == ctx) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (ctx->device == peerContext->device || !sim_options()->peers) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    bit = UINT64_C(1) << peerContext->device->ordinal;
    if ((ctx->peers & bit) != 0) {
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    ctx->peers |= bit;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxDisablePeerAccess, SIM_CONTEXT, (CUcontext peerContext))
{
    CUcontext ctx = sim_ctx_current();
    uint64_t bit;

    if (!sim_ctx_is_live(peerContext)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    bit = UINT64_C(1) << peerContext->device->ordinal;
    if ((ctx->peers & bit) == 0) {
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    ctx->peers &= ~bit;
    return CUDA_SUCCESS;
}
