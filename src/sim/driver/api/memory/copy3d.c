/* Exported functions that copy a box. */
#include "sim/driver/api/memory/copy_submit.h"

#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"

static CUresult box(bool ptsz, CUstream hStream, const CUDA_MEMCPY3D *params,
                    enum sim_copy_mode mode)
{
    struct sim_copy copy;
    struct sim_stream *stream;
    CUresult result = sim_copy_from_3d(params, &copy);

    if (result == CUDA_SUCCESS) {
        result = sim_stream_resolve(hStream, ptsz, &stream);
    }
    return result == CUDA_SUCCESS ? sim_copy_submit(stream, &copy, mode) : result;
}

SIM_API_PTDS(cuMemcpy3D_v2, SIM_CONTEXT, (const CUDA_MEMCPY3D *pCopy))
{
    return box(ptsz, NULL, pCopy, SIM_COPY_SYNC);
}

SIM_API_PTSZ(cuMemcpy3DAsync_v2, SIM_CONTEXT, (const CUDA_MEMCPY3D *pCopy, CUstream hStream))
{
    return box(ptsz, hStream, pCopy, SIM_COPY_ASYNC);
}

static CUresult peer_box(bool ptsz, CUstream hStream, const CUDA_MEMCPY3D_PEER *params,
                         enum sim_copy_mode mode)
{
    struct sim_copy copy;
    struct sim_stream *stream;
    CUresult result;

    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_ctx_is_live(params->dstContext) || !sim_ctx_is_live(params->srcContext)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    result = sim_copy_from_3d_peer(params, &copy);
    copy.peer = true;
    if (result == CUDA_SUCCESS) {
        result = sim_stream_resolve(hStream, ptsz, &stream);
    }
    return result == CUDA_SUCCESS ? sim_copy_submit(stream, &copy, mode) : result;
}

SIM_API_PTDS(cuMemcpy3DPeer, SIM_CONTEXT, (const CUDA_MEMCPY3D_PEER *pCopy))
{
    return peer_box(ptsz, NULL, pCopy, SIM_COPY_SYNC);
}

SIM_API_PTSZ(cuMemcpy3DPeerAsync, SIM_CONTEXT, (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream))
{
    return peer_box(ptsz, hStream, pCopy, SIM_COPY_ASYNC);
}

/* The side of a copy from a pointer operand. A row length or layer height of 0 means tightly
 * packed. */
static CUresult place_from_operand(const CUmemcpy3DOperand *operand, const CUextent3D *extent,
                                   struct sim_place *ret_place)
{
    size_t row;
    size_t layer;

    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    row = operand->op.ptr.rowLength != 0 ? operand->op.ptr.rowLength : extent->width;
    layer = operand->op.ptr.layerHeight != 0 ? operand->op.ptr.layerHeight : extent->height;
    *ret_place = (struct sim_place){
        .address = operand->op.ptr.ptr,
        .pitch = row,
        .slice = row * layer,
        .may_be_pageable = true,
    };
    return CUDA_SUCCESS;
}

static CUresult batch_box(struct sim_stream *stream, const CUDA_MEMCPY3D_BATCH_OP *params)
{
    struct sim_copy copy = {
        .width = params->extent.width,
        .height = params->extent.height,
        .depth = params->extent.depth,
    };
    CUresult result = place_from_operand(&params->dst, &params->extent, &copy.dst);

    if (result == CUDA_SUCCESS) {
        result = place_from_operand(&params->src, &params->extent, &copy.src);
    }
    if (result == CUDA_SUCCESS && (copy.width == 0 || copy.height == 0 || copy.depth == 0)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return result == CUDA_SUCCESS ? sim_copy_submit(stream, &copy, SIM_COPY_ASYNC) : result;
}

static CUresult batch(bool ptsz, CUstream hStream, const CUDA_MEMCPY3D_BATCH_OP *list, size_t count,
                      size_t *ret_failed, unsigned long long flags)
{
    if (list == NULL || count == 0 || flags != 0 || (hStream == NULL && !ptsz) ||
        hStream == CU_STREAM_LEGACY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

        if (result == CUDA_SUCCESS) {
            result = batch_box(stream, &list[i]);
        }
        if (result != CUDA_SUCCESS) {
            if (ret_failed != NULL) {
                *ret_failed = i;
            }
            return result;
        }
    }
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuMemcpy3DBatchAsync, SIM_CONTEXT,
             (size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
              unsigned long long flags, CUstream hStream))
{
    return batch(ptsz, hStream, opList, numOps, failIdx, flags);
}

SIM_API_PTSZ(cuMemcpy3DBatchAsync_v2, SIM_CONTEXT,
             (size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
              CUstream hStream))
{
    return batch(ptsz, hStream, opList, numOps, NULL, flags);
}
