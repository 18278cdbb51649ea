/* cuTensorMap*. */
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/kernels/tensor_map.h"

/* cuda.h, cuTensorMapEncodeTiled: rank 1 to 5 (3 to 5 for im2col), the global address aligned to 16
 * bytes, the map to 64 bytes. */
static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                       cuuint32_t least_rank, const void *address, const cuuint64_t *dims,
                       const cuuint32_t *steps)
{
    if (map == NULL || (uintptr_t)map % 64 != 0 || address == NULL ||
        (uintptr_t)address % 16 != 0 || rank < least_rank || rank > 5 || dims == NULL ||
        steps == NULL || type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (cuuint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0 || dims[i] > (1ULL << 32) || steps[i] == 0 || steps[i] > 8) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    memset(map, 0, sizeof(*map));
    sim_tensor_map_seal(map, address);
    return CUDA_SUCCESS;
}

SIM_API(cuTensorMapEncodeTiled, SIM_INITIALIZED,
        (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
         void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
         const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
         CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill))
{
    if (boxDim == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return encode(tensorMap, tensorDataType, tensorRank, 1, globalAddress, globalDim,
                  elementStrides);
}

SIM_API(cuTensorMapEncodeIm2col, SIM_INITIALIZED,
        (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
         void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
         const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
         cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
         CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill))
{
    if (pixelBoxLowerCorner == NULL || pixelBoxUpperCorner == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return encode(tensorMap, tensorDataType, tensorRank, 3, globalAddress, globalDim,
                  elementStrides);
}

SIM_API(cuTensorMapEncodeIm2colWide, SIM_INITIALIZED,
        (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
         void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
         int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
         cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
         CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
         CUtensorMapFloatOOBfill oobFill))
{
    return encode(tensorMap, tensorDataType, tensorRank, 3, globalAddress, globalDim,
                  elementStrides);
}

SIM_API(cuTensorMapReplaceAddress, SIM_INITIALIZED, (CUtensorMap * tensorMap, void *globalAddress))
{
    if (tensorMap == NULL || globalAddress == NULL || (uintptr_t)globalAddress % 16 != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_tensor_map_seal(tensorMap, globalAddress);
    return CUDA_SUCCESS;
}
