/* Stream-ordered allocation and memory pools. */
#include <stddef.h>

#include "sim/runtime/entry.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps),
               "pool properties are the same");
_Static_assert(offsetof(struct cudaMemPoolProps, maxSize) == offsetof(CUmemPoolProps, maxSize),
               "pool properties are the same");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc),
               "access descriptors are the same");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
               "exported pointers are the same");

SIMRT_API_PTSZ(cudaMallocAsync, SIMRT_CONTEXT,
               (void **ret_address, size_t size, cudaStream_t stream), (ret_address, size, stream))
{
    CUresult result = simrt_driver.cuMemAllocAsync[ptsz]((CUdeviceptr *)ret_address, size, stream);

    return simrt_error(simrt_block_allocated(result, ret_address, size));
}

SIMRT_API_PTSZ(cudaMallocFromPoolAsync, SIMRT_CONTEXT,
               (void **ret_address, size_t size, cudaMemPool_t pool, cudaStream_t stream),
               (ret_address, size, pool, stream))
{
    CUresult result =
        simrt_driver.cuMemAllocFromPoolAsync[ptsz]((CUdeviceptr *)ret_address, size, pool, stream);

    return simrt_error(simrt_block_allocated(result, ret_address, size));
}

SIMRT_API_PTSZ(cudaFreeAsync, SIMRT_CONTEXT, (void *address, cudaStream_t stream),
               (address, stream))
{
    simrt_block_freed(address);
    return simrt_error(simrt_driver.cuMemFreeAsync[ptsz]((CUdeviceptr)address, stream));
}

SIMRT_API(cudaDeviceGetDefaultMemPool, SIMRT_DRIVER, (cudaMemPool_t * ret_pool, int ordinal),
          (ret_pool, ordinal))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceGetDefaultMemPool(ret_pool, device));
}

SIMRT_API(cudaDeviceGetMemPool, SIMRT_DRIVER, (cudaMemPool_t * ret_pool, int ordinal),
          (ret_pool, ordinal))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceGetMemPool(ret_pool, device));
}

SIMRT_API(cudaDeviceSetMemPool, SIMRT_DRIVER, (int ordinal, cudaMemPool_t pool), (ordinal, pool))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceSetMemPool(device, pool));
}

#if CUDART_VERSION >= 13000
SIMRT_API(cudaMemGetDefaultMemPool, SIMRT_DRIVER,
          (cudaMemPool_t * ret_pool, struct cudaMemLocation *location,
           enum cudaMemAllocationType type),
          (ret_pool, location, type))
{
    return simrt_error(simrt_driver.cuMemGetDefaultMemPool(ret_pool, (CUmemLocation *)location,
                                                           (CUmemAllocationType)type));
}

SIMRT_API(cudaMemGetMemPool, SIMRT_DRIVER,
          (cudaMemPool_t * ret_pool, struct cudaMemLocation *location,
           enum cudaMemAllocationType type),
          (ret_pool, location, type))
{
    return simrt_error(simrt_driver.cuMemGetMemPool(ret_pool, (CUmemLocation *)location,
                                                    (CUmemAllocationType)type));
}

SIMRT_API(cudaMemSetMemPool, SIMRT_DRIVER,
          (struct cudaMemLocation * location, enum cudaMemAllocationType type, cudaMemPool_t pool),
          (location, type, pool))
{
    return simrt_error(
        simrt_driver.cuMemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type, pool));
}
#endif

SIMRT_API(cudaMemPoolCreate, SIMRT_DRIVER,
          (cudaMemPool_t * ret_pool, const struct cudaMemPoolProps *properties),
          (ret_pool, properties))
{
    return simrt_error(simrt_driver.cuMemPoolCreate(ret_pool, (const CUmemPoolProps *)properties));
}

SIMRT_API(cudaMemPoolDestroy, SIMRT_DRIVER, (cudaMemPool_t pool), (pool))
{
    return simrt_error(simrt_driver.cuMemPoolDestroy(pool));
}

SIMRT_API(cudaMemPoolTrimTo, SIMRT_DRIVER, (cudaMemPool_t pool, size_t keep), (pool, keep))
{
    return simrt_error(simrt_driver.cuMemPoolTrimTo(pool, keep));
}

SIMRT_API(cudaMemPoolSetAttribute, SIMRT_DRIVER,
          (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
          (pool, attribute, value))
{
    return simrt_error(
        simrt_driver.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

SIMRT_API(cudaMemPoolGetAttribute, SIMRT_DRIVER,
          (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *ret_value),
          (pool, attribute, ret_value))
{
    return simrt_error(
        simrt_driver.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, ret_value));
}

SIMRT_API(cudaMemPoolSetAccess, SIMRT_DRIVER,
          (cudaMemPool_t pool, const struct cudaMemAccessDesc *accesses, size_t count),
          (pool, accesses, count))
{
    return simrt_error(
        simrt_driver.cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)accesses, count));
}

SIMRT_API(cudaMemPoolGetAccess, SIMRT_DRIVER,
          (enum cudaMemAccessFlags * ret_flags, cudaMemPool_t pool,
           struct cudaMemLocation *location),
          (ret_flags, pool, location))
{
    return simrt_error(simrt_driver.cuMemPoolGetAccess((CUmemAccess_flags *)ret_flags, pool,
                                                       (CUmemLocation *)location));
}

SIMRT_API(cudaMemPoolExportToShareableHandle, SIMRT_DRIVER,
          (void *ret_handle, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
           unsigned int flags),
          (ret_handle, pool, type, flags))
{
    return simrt_error(simrt_driver.cuMemPoolExportToShareableHandle(
        ret_handle, pool, (CUmemAllocationHandleType)type, flags));
}

SIMRT_API(cudaMemPoolImportFromShareableHandle, SIMRT_DRIVER,
          (cudaMemPool_t * ret_pool, void *handle, enum cudaMemAllocationHandleType type,
           unsigned int flags),
          (ret_pool, handle, type, flags))
{
    return simrt_error(simrt_driver.cuMemPoolImportFromShareableHandle(
        ret_pool, handle, (CUmemAllocationHandleType)type, flags));
}

SIMRT_API(cudaMemPoolExportPointer, SIMRT_DRIVER,
          (struct cudaMemPoolPtrExportData * ret_data, void *address), (ret_data, address))
{
    return simrt_error(simrt_driver.cuMemPoolExportPointer((CUmemPoolPtrExportData *)ret_data,
                                                           (CUdeviceptr)address));
}

SIMRT_API(cudaMemPoolImportPointer, SIMRT_DRIVER,
          (void **ret_address, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data),
          (ret_address, pool, data))
{
    return simrt_error(simrt_driver.cuMemPoolImportPointer((CUdeviceptr *)ret_address, pool,
                                                           (CUmemPoolPtrExportData *)data));
}
