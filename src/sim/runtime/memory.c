/* Allocation of device, host and managed memory, and attributes of pointers. */
#include <stddef.h>
#include <stdint.h>

#include "sim/runtime/entry.h"

/* The element size for the driver's allocation of pitched memory. */
enum { PITCH_ELEMENT_BYTES = 4 };

SIMRT_API(cudaMalloc, SIMRT_CONTEXT, (void **ret_address, size_t size), (ret_address, size))
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

SIMRT_API(cudaFree, SIMRT_CONTEXT, (void *address), (address))
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
          (void **ret_address, size_t *ret_pitch, size_t width, size_t height),
          (ret_address, ret_pitch, width, height))
{
    if (ret_address == NULL || ret_pitch == NULL) {
        return cudaErrorInvalidValue;
    }
    return malloc_pitch(ret_address, ret_pitch, width, height);
}

SIMRT_API(cudaMalloc3D, SIMRT_CONTEXT,
          (struct cudaPitchedPtr * ret_pitched, struct cudaExtent extent), (ret_pitched, extent))
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

SIMRT_API(cudaMallocHost, SIMRT_CONTEXT, (void **ret_pointer, size_t size), (ret_pointer, size))
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

SIMRT_API(cudaHostAlloc, SIMRT_CONTEXT, (void **ret_pointer, size_t size, unsigned int flags),
          (ret_pointer, size, flags))
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

SIMRT_API(cudaFreeHost, SIMRT_CONTEXT, (void *pointer), (pointer))
{
    if (pointer == NULL) {
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuMemFreeHost(pointer));
}

SIMRT_API(cudaHostRegister, SIMRT_CONTEXT, (void *pointer, size_t size, unsigned int flags),
          (pointer, size, flags))
{
    return simrt_error(simrt_driver.cuMemHostRegister(pointer, size, flags));
}

SIMRT_API(cudaHostUnregister, SIMRT_CONTEXT, (void *pointer), (pointer))
{
    return simrt_error(simrt_driver.cuMemHostUnregister(pointer));
}

SIMRT_API(cudaHostGetDevicePointer, SIMRT_CONTEXT,
          (void **ret_address, void *pointer, unsigned int flags), (ret_address, pointer, flags))
{
    return simrt_error(
        simrt_driver.cuMemHostGetDevicePointer((CUdeviceptr *)ret_address, pointer, flags));
}

SIMRT_API(cudaHostGetFlags, SIMRT_CONTEXT, (unsigned int *ret_flags, void *pointer),
          (ret_flags, pointer))
{
    return simrt_error(simrt_driver.cuMemHostGetFlags(ret_flags, pointer));
}

SIMRT_API(cudaMallocManaged, SIMRT_CONTEXT, (void **ret_address, size_t size, unsigned int flags),
          (ret_address, size, flags))
{
    return simrt_error(simrt_driver.cuMemAllocManaged((CUdeviceptr *)ret_address, size, flags));
}

SIMRT_API(cudaMemGetInfo, SIMRT_CONTEXT, (size_t * ret_free, size_t *ret_total),
          (ret_free, ret_total))
{
    return simrt_error(simrt_driver.cuMemGetInfo(ret_free, ret_total));
}

SIMRT_API(cudaPointerGetAttributes, SIMRT_CONTEXT,
          (struct cudaPointerAttributes * ret_attributes, const void *pointer),
          (ret_attributes, pointer))
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
    /* This function also succeeds for memory that CUDA does not know, with zeros. */
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

static CUmemLocation driver_location(struct cudaMemLocation location)
{
    return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

SIMRT_API(cudaMemAdvise, SIMRT_CONTEXT,
          (const void *address, size_t size, enum cudaMemoryAdvise advice,
           struct cudaMemLocation location),
          (address, size, advice, location))
{
    return simrt_error(simrt_driver.cuMemAdvise((CUdeviceptr)address, size, (CUmem_advise)advice,
                                                driver_location(location)));
}

SIMRT_API(cudaMemRangeGetAttribute, SIMRT_CONTEXT,
          (void *ret_data, size_t data_size, enum cudaMemRangeAttribute attribute,
           const void *address, size_t size),
          (ret_data, data_size, attribute, address, size))
{
    return simrt_error(simrt_driver.cuMemRangeGetAttribute(
        ret_data, data_size, (CUmem_range_attribute)attribute, (CUdeviceptr)address, size));
}

SIMRT_API(cudaMemRangeGetAttributes, SIMRT_CONTEXT,
          (void **ret_data, size_t *data_sizes, enum cudaMemRangeAttribute *attributes,
           size_t count, const void *address, size_t size),
          (ret_data, data_sizes, attributes, count, address, size))
{
    return simrt_error(simrt_driver.cuMemRangeGetAttributes(ret_data, data_sizes,
                                                            (CUmem_range_attribute *)attributes,
                                                            count, (CUdeviceptr)address, size));
}

SIMRT_API_PTSZ(cudaMemPrefetchAsync, SIMRT_CONTEXT,
               (const void *address, size_t size, struct cudaMemLocation location,
                unsigned int flags, cudaStream_t stream),
               (address, size, location, flags, stream))
{
    return simrt_error(simrt_driver.cuMemPrefetchAsync[ptsz](
        (CUdeviceptr)address, size, driver_location(location), flags, stream));
}

_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "locations are the same");

#if CUDART_VERSION >= 13000
SIMRT_API_PTSZ(cudaMemPrefetchBatchAsync, SIMRT_CONTEXT,
               (void **addresses, size_t *sizes, size_t count, struct cudaMemLocation *locations,
                size_t *location_indices, size_t location_count, unsigned long long flags,
                cudaStream_t stream),
               (addresses, sizes, count, locations, location_indices, location_count, flags,
                stream))
{
    return simrt_error(simrt_driver.cuMemPrefetchBatchAsync[ptsz](
        (CUdeviceptr *)addresses, sizes, count, (CUmemLocation *)locations, location_indices,
        location_count, flags, stream));
}

SIMRT_API_PTSZ(cudaMemDiscardBatchAsync, SIMRT_CONTEXT,
               (void **addresses, size_t *sizes, size_t count, unsigned long long flags,
                cudaStream_t stream),
               (addresses, sizes, count, flags, stream))
{
    return simrt_error(simrt_driver.cuMemDiscardBatchAsync[ptsz]((CUdeviceptr *)addresses, sizes,
                                                                 count, flags, stream));
}

SIMRT_API_PTSZ(cudaMemDiscardAndPrefetchBatchAsync, SIMRT_CONTEXT,
               (void **addresses, size_t *sizes, size_t count, struct cudaMemLocation *locations,
                size_t *location_indices, size_t location_count, unsigned long long flags,
                cudaStream_t stream),
               (addresses, sizes, count, locations, location_indices, location_count, flags,
                stream))
{
    return simrt_error(simrt_driver.cuMemDiscardAndPrefetchBatchAsync[ptsz](
        (CUdeviceptr *)addresses, sizes, count, (CUmemLocation *)locations, location_indices,
        location_count, flags, stream));
}
#endif
