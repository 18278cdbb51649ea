/* Fills of device memory. */
#include <stddef.h>

#include "sim/runtime/entry.h"

SIMRT_API_PTDS(cudaMemset, SIMRT_CONTEXT, (void *address, int value, size_t size))
{
    if (size == 0) {
        return cudaSuccess;
    }
    return simrt_error(
        simrt_driver.cuMemsetD8[ptsz]((CUdeviceptr)address, (unsigned char)value, size));
}

SIMRT_API_PTSZ(cudaMemsetAsync, SIMRT_CONTEXT,
               (void *address, int value, size_t size, cudaStream_t stream))
{
    if (size == 0) {
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemsetD8Async[ptsz]((CUdeviceptr)address,
                                                          (unsigned char)value, size, stream));
}

SIMRT_API_PTDS(cudaMemset2D, SIMRT_CONTEXT,
               (void *address, size_t pitch, int value, size_t width, size_t height))
{
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemsetD2D8[ptsz]((CUdeviceptr)address, pitch,
                                                       (unsigned char)value, width, height));
}

SIMRT_API_PTSZ(cudaMemset2DAsync, SIMRT_CONTEXT,
               (void *address, size_t pitch, int value, size_t width, size_t height,
                cudaStream_t stream))
{
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemsetD2D8Async[ptsz](
        (CUdeviceptr)address, pitch, (unsigned char)value, width, height, stream));
}

/* The planes that the driver fills: a single one if no rows are skipped, or one for each slice. */
struct simrt_planes {
    size_t count;
    size_t rows;
    size_t stride_bytes;
};

static struct simrt_planes planes_of(struct cudaPitchedPtr pitched, struct cudaExtent extent)
{
    size_t slice_bytes = pitched.pitch * pitched.ysize;

    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) {
        return (struct simrt_planes){0};
    }
    if (extent.depth == 1 || extent.height == pitched.ysize) {
        return (struct simrt_planes){1, extent.height * extent.depth, slice_bytes};
    }
    return (struct simrt_planes){extent.depth, extent.height, slice_bytes};
}

SIMRT_API_PTDS(cudaMemset3D, SIMRT_CONTEXT,
               (struct cudaPitchedPtr pitched, int value, struct cudaExtent extent))
{
    struct simrt_planes planes = planes_of(pitched, extent);
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < planes.count && result == CUDA_SUCCESS; i++) {
        CUdeviceptr address = (CUdeviceptr)pitched.ptr + i * planes.stride_bytes;
        result = simrt_driver.cuMemsetD2D8[ptsz](address, pitched.pitch, (unsigned char)value,
                                                 extent.width, planes.rows);
    }
    return simrt_error(result);
}

SIMRT_API_PTSZ(cudaMemset3DAsync, SIMRT_CONTEXT,
               (struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                cudaStream_t stream))
{
    struct simrt_planes planes = planes_of(pitched, extent);
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < planes.count && result == CUDA_SUCCESS; i++) {
        CUdeviceptr address = (CUdeviceptr)pitched.ptr + i * planes.stride_bytes;
        result = simrt_driver.cuMemsetD2D8Async[ptsz](address, pitched.pitch, (unsigned char)value,
                                                      extent.width, planes.rows, stream);
    }
    return simrt_error(result);
}
