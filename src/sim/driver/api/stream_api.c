/* Exported functions on streams, except submission and capture. */
#include "sim/driver/core/context.h"
#include "sim/driver/exec/stream.h"

#include "sim/driver/api/entry.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/poll_loop.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"

SIM_API(cuStreamCreate, SIM_CONTEXT, (CUstream * phStream, unsigned int Flags))
{
    return sim_stream_create(sim_ctx_current(), Flags, SIM_PRIORITY_LEAST, phStream);
}

SIM_API(cuStreamCreateWithPriority, SIM_CONTEXT,
        (CUstream * phStream, unsigned int flags, int priority))
{
    return sim_stream_create(sim_ctx_current(), flags, priority, phStream);
}

SIM_API(cuStreamDestroy, SIM_CONTEXT, (CUstream hStream))
{
    struct sim_stream *stream = sim_handle_object(SIM_HANDLE_STREAM, hStream);

    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_note("stream=%llu", stream->id);
    sim_capture_leave(stream);
    sim_stream_retire(stream);
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuStreamDestroy_v2, cuStreamDestroy);

SIM_API_PTSZ(cuStreamQuery, SIM_CONTEXT, (CUstream hStream))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_capture_forbids_sync(stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_stream_is_busy(stream) && sim_poll_loop_waits(stream)) {
        sim_submit_expect(stream);
    }
    return sim_stream_is_busy(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamSynchronize, SIM_CONTEXT, (CUstream hStream))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_capture_forbids_sync(stream);
    return result == CUDA_SUCCESS ? sim_submit_wait(stream) : result;
}

SIM_API_PTSZ(cuStreamGetPriority, SIM_CONTEXT, (CUstream hStream, int *priority))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || priority == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetId, SIM_HEALTHY, (CUstream hStream, unsigned long long *streamId))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || streamId == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *streamId = stream->id;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetFlags, SIM_CONTEXT, (CUstream hStream, unsigned int *flags))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || flags == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetDevice, SIM_CONTEXT, (CUstream hStream, CUdevice *device))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || device == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *device = sim_stream_device(stream);
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetCtx, SIM_HEALTHY, (CUstream hStream, CUcontext *pctx))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || pctx == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *pctx = stream->ctx;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetCtx_v2, SIM_HEALTHY,
             (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || pCtx == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *pCtx = stream->ctx;
    if (pGreenCtx != NULL) {
        *pGreenCtx = NULL;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuStreamGetGreenCtx, SIM_HEALTHY, (CUstream hStream, CUgreenCtx *phCtx))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, false, &stream);

    if (result != CUDA_SUCCESS || phCtx == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *phCtx = NULL;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamCopyAttributes, SIM_HEALTHY, (CUstream dst, CUstream src))
{
    struct sim_stream *to;
    struct sim_stream *from;
    CUresult result = sim_stream_resolve(dst, ptsz, &to);

    if (result == CUDA_SUCCESS) {
        result = sim_stream_resolve(src, ptsz, &from);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (to->ctx != from->ctx) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    to->sync_policy = from->sync_policy;
    to->domain = from->domain;
    to->domain_map = from->domain_map;
    to->window = from->window;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetAttribute, SIM_HEALTHY,
             (CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || value_out == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)attr) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value_out->accessPolicyWindow = stream->window;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value_out->syncPolicy = stream->sync_policy;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        value_out->priority = stream->priority;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value_out->memSyncDomainMap = stream->domain_map;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value_out->memSyncDomain = stream->domain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API_PTSZ(cuStreamSetAttribute, SIM_HEALTHY,
             (CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS || value == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)attr) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        stream->window = value->accessPolicyWindow;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        stream->sync_policy = value->syncPolicy;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        stream->priority = value->priority;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        stream->domain_map = value->memSyncDomainMap;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        stream->domain = value->memSyncDomain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
