/* Allocation of device and host memory, stream-ordered allocation, and attributes of pointers. */
#include <stddef.h>
#include <stdint.h>

#include "sim/runtime/entry.h"

_Static_assert(offsetof(struct cudaMemPoolProps, maxSize) == offsetof(CUmemPoolProps, maxSize),
               "pool properties are the same");

/* The element size for the driver's allocation of pitched memory. */
enum { PITCH_ELEMENT_BYTES = 4 };

SIMRT_API(cudaMalloc, SIMRT_CONTEXT, (void **ret_address, size_t size))
{
    if (ret_address == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        *ret_address = NULL;
        return cudaSuccess;
    }
    return simrt_error(simrt_block_allocated(
        simrt_driver.cuMemAlloc((CUdeviceptr *)ret_address, size), ret_address, size));
}

SIMRT_API(cudaFree, SIMRT_CONTEXT, (void *address))
{
    if (address == NULL) {
        return cudaSuccess;
    }
    simrt_block_freed(address);
    return simrt_error(simrt_driver.cuMemFree((CUdeviceptr)address));
}

static cudaError_t malloc_pitch(void **ret_address, size_t *ret_pitch, size_t width, size_t rows)
{
    if (width == 0 || rows == 0) {
        *ret_address = NULL;
        *ret_pitch = 0;
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemAllocPitch((CUdeviceptr *)ret_address, ret_pitch, width,
                                                    rows, PITCH_ELEMENT_BYTES));
}

SIMRT_API(cudaMallocPitch, SIMRT_CONTEXT,
          (void **ret_address, size_t *ret_pitch, size_t width, size_t height))
{
    if (ret_address == NULL || ret_pitch == NULL) {
        return cudaErrorInvalidValue;
    }
    return malloc_pitch(ret_address, ret_pitch, width, height);
}

SIMRT_API(cudaMalloc3D, SIMRT_CONTEXT,
          (struct cudaPitchedPtr * ret_pitched, struct cudaExtent extent))
{
    if (ret_pitched == NULL || (extent.depth != 0 && extent.height > SIZE_MAX / extent.depth)) {
        return cudaErrorInvalidValue;
    }
    struct cudaPitchedPtr pitched = {.xsize = extent.width, .ysize = extent.height};
    cudaError_t error =
        malloc_pitch(&pitched.ptr, &pitched.pitch, extent.width, extent.height * extent.depth);

    if (error == cudaSuccess) {
        *ret_pitched = pitched;
    }
    return error;
}

SIMRT_API(cudaMallocHost, SIMRT_CONTEXT, (void **ret_pointer, size_t size))
{
    if (ret_pointer == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        *ret_pointer = NULL;
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemAllocHost(ret_pointer, size));
}

SIMRT_API(cudaHostAlloc, SIMRT_CONTEXT, (void **ret_pointer, size_t size, unsigned int flags))
{
    if (ret_pointer == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        *ret_pointer = NULL;
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemHostAlloc(ret_pointer, size, flags));
}

SIMRT_API(cudaFreeHost, SIMRT_CONTEXT, (void *pointer))
{
    if (pointer == NULL) {
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemFreeHost(pointer));
}

SIMRT_API(cudaPointerGetAttributes, SIMRT_CONTEXT,
          (struct cudaPointerAttributes * ret_attributes, const void *pointer))
{
    unsigned int memory_type = 0;
    int ordinal = 0;
    void *device_pointer = NULL;
    void *host_pointer = NULL;
    unsigned int managed = 0;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
    };
    void *answers[] = {&memory_type, &ordinal, &device_pointer, &host_pointer, &managed};

    if (ret_attributes == NULL) {
        return cudaErrorInvalidValue;
    }
    /* For memory that CUDA does not know, this function also succeeds, and returns zeros. */
    CUresult result = simrt_driver.cuPointerGetAttributes(sizeof(wanted) / sizeof(wanted[0]),
                                                          wanted, answers, (CUdeviceptr)pointer);
    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    struct cudaPointerAttributes attributes = {
        .type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)memory_type,
        .device = ordinal,
        .devicePointer = device_pointer,
        .hostPointer = host_pointer,
    };
    if (memory_type == 0) {
        attributes.type = cudaMemoryTypeUnregistered;
        attributes.device = cudaInvalidDeviceId;
        attributes.hostPointer = (void *)(uintptr_t)pointer;
    }
    *ret_attributes = attributes;
    return cudaSuccess;
}

SIMRT_API_PTSZ(cudaMallocAsync, SIMRT_CONTEXT,
               (void **ret_address, size_t size, cudaStream_t stream))
{
    CUresult result = simrt_driver.cuMemAllocAsync[ptsz]((CUdeviceptr *)ret_address, size, stream);

    return simrt_error(simrt_block_allocated(result, ret_address, size));
}

SIMRT_API_PTSZ(cudaMallocFromPoolAsync, SIMRT_CONTEXT,
               (void **ret_address, size_t size, cudaMemPool_t pool, cudaStream_t stream))
{
    CUresult result =
        simrt_driver.cuMemAllocFromPoolAsync[ptsz]((CUdeviceptr *)ret_address, size, pool, stream);

    return simrt_error(simrt_block_allocated(result, ret_address, size));
}

SIMRT_API_PTSZ(cudaFreeAsync, SIMRT_CONTEXT, (void *address, cudaStream_t stream))
{
    simrt_block_freed(address);
    return simrt_error(simrt_driver.cuMemFreeAsync[ptsz]((CUdeviceptr)address, stream));
}
