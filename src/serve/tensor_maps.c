/* Tensor maps: the driver makes them, and each is recorded with its address. */
#include "process/process.h"
#include "serve/handlers.h"
#include "submit/tensor_map.h"

static CUresult note(CUresult result, const CUtensorMap *map, const void *address)
{
    if (result == CUDA_SUCCESS) {
        spw_submit_tensor_map_add(map, (uint64_t)(uintptr_t)address);
    }
    return result;
}

CUresult spw_serve_cuTensorMapEncodeTiled(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const cuuint32_t *boxDim, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    CUresult result = spw_process_driver()->cuTensorMapEncodeTiled(
        tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides, boxDim,
        elementStrides, interleave, swizzle, l2Promotion, oobFill);

    return note(result, tensorMap, globalAddress);
}

CUresult spw_serve_cuTensorMapEncodeIm2col(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    CUresult result = spw_process_driver()->cuTensorMapEncodeIm2col(
        tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
        pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn, elementStrides,
        interleave, swizzle, l2Promotion, oobFill);

    return note(result, tensorMap, globalAddress);
}

CUresult spw_serve_cuTensorMapEncodeIm2colWide(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
    CUtensorMapFloatOOBfill oobFill)
{
    CUresult result = spw_process_driver()->cuTensorMapEncodeIm2colWide(
        tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
        pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth, channelsPerPixel, pixelsPerColumn,
        elementStrides, interleave, mode, swizzle, l2Promotion, oobFill);

    return note(result, tensorMap, globalAddress);
}

CUresult spw_serve_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    CUresult result = spw_process_driver()->cuTensorMapReplaceAddress(tensorMap, globalAddress);

    return note(result, tensorMap, globalAddress);
}
