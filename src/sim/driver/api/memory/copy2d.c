/* Exported functions for two-dimensional copies. */
#include "sim/driver/api/memory/copy_submit.h"

#include "sim/driver/api/entry.h"

/* One side of a copy, from the members of CUDA_MEMCPY2D. */
static CUresult place_from(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
                           size_t x, size_t y, struct sim_place *ret_place)
{
    CUdeviceptr base;

    switch (type) {
    case CU_MEMORYTYPE_HOST:
        base = (CUdeviceptr)host;
        break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        base = device;
        break;
    case CU_MEMORYTYPE_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_place = (struct sim_place){
        .address = base + y * pitch + x,
        .pitch = pitch,
        .may_be_pageable = type != CU_MEMORYTYPE_DEVICE,
    };
    return CUDA_SUCCESS;
}

static CUresult rectangle(bool ptsz, CUstream hStream, const CUDA_MEMCPY2D *params,
                          enum sim_copy_mode mode)
{
    struct sim_copy copy = {.depth = 1};
    struct sim_stream *stream;
    CUresult result;

    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy.width = params->WidthInBytes;
    copy.height = params->Height;
    result = place_from(params->dstMemoryType, params->dstHost, params->dstDevice, params->dstPitch,
                        params->dstXInBytes, params->dstY, &copy.dst);
    if (result == CUDA_SUCCESS) {
        result = place_from(params->srcMemoryType, params->srcHost, params->srcDevice,
                            params->srcPitch, params->srcXInBytes, params->srcY, &copy.src);
    }
    if (result == CUDA_SUCCESS) {
        result = sim_stream_resolve(hStream, ptsz, &stream);
    }
    return result == CUDA_SUCCESS ? sim_copy_submit(stream, &copy, mode) : result;
}

SIM_API_PTDS(cuMemcpy2D_v2, SIM_CONTEXT, (const CUDA_MEMCPY2D *pCopy))
{
    return rectangle(ptsz, NULL, pCopy, SIM_COPY_SYNC);
}

SIM_API_PTDS(cuMemcpy2DUnaligned_v2, SIM_CONTEXT, (const CUDA_MEMCPY2D *pCopy))
{
    return rectangle(ptsz, NULL, pCopy, SIM_COPY_SYNC);
}

SIM_API_PTSZ(cuMemcpy2DAsync_v2, SIM_CONTEXT, (const CUDA_MEMCPY2D *pCopy, CUstream hStream))
{
    return rectangle(ptsz, hStream, pCopy, SIM_COPY_ASYNC);
}
