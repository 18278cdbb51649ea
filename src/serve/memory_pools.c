/* Memory pools. spillway serves the default pool of a device: its sizes, trimming and access. The
 * other settings stay those of the driver's own default pool. Only the driver serves pools that the
 * program creates. */
#include "common/minmax.h"
#include "device/access.h"
#include "device/spill.h"
#include "serve/handlers.h"

/* "Used" means the live bytes on both tiers. "Reserved" means the bytes that back them, and is
 * never less. */
CUresult spw_serve_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct spw_device *device = value == NULL ? NULL : spw_device_of_pool(pool);
    const struct spw_counters *c = device == NULL ? NULL : device->counters;
    uint64_t used, reserved;

    if (device == NULL || spw_device_opened(device) == NULL ||
        spw_process_settings()->mode == SPW_MODE_OBSERVE) {
        return spw_process_driver()->cuMemPoolGetAttribute(pool, attr, value);
    }
    switch (attr) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = spw_counter_get(&c->async_live_bytes);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = spw_counter_get(&c->async_live_peak_bytes);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        used = spw_counter_get(&c->async_live_bytes);
        reserved = spw_counter_get(&c->committed_bytes) + spw_counter_get(&c->host_used_bytes);
        *(cuuint64_t *)value = spw_max(reserved, used);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        used = spw_counter_get(&c->async_live_peak_bytes);
        reserved = spw_counter_get(&c->reserved_peak_bytes);
        *(cuuint64_t *)value = spw_max(reserved, used);
        return CUDA_SUCCESS;
    default:
        return spw_process_driver()->cuMemPoolGetAttribute(pool, attr, value);
    }
}

CUresult spw_serve_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    CUresult result = spw_process_driver()->cuMemPoolSetAttribute(pool, attr, value);
    struct spw_device *device = spw_device_of_pool(pool);
    struct spw_pool *ours = device == NULL ? NULL : spw_device_opened(device);

    if (result == CUDA_SUCCESS && ours != NULL) {
        /* A peak can only be set to zero. It then begins at the current value. */
        if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
            spw_counter_peak(&device->counters->async_live_top_bytes,
                             &device->counters->async_live_peak_bytes);
            spw_pool_reset_ordered_peak(ours);
        } else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
            spw_pool_reset_reserved_peak(ours);
        }
    }
    return result;
}

CUresult spw_serve_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct spw_device *device = spw_device_of_pool(pool);

    if (device != NULL) {
        spw_device_trim(device, minBytesToKeep);
    }
    return spw_process_driver()->cuMemPoolTrimTo(pool, minBytesToKeep);
}

CUresult spw_serve_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    CUresult result = spw_process_driver()->cuMemPoolSetAccess(pool, map, count);
    struct spw_device *device = spw_device_of_pool(pool);

    for (size_t i = 0; device != NULL && result == CUDA_SUCCESS && i < count; i++) {
        const struct spw_device *accessor = map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                                ? spw_device_of(map[i].location.id)
                                                : NULL;

        if (accessor != NULL && accessor != device) {
            result = spw_device_access_set(device, accessor->ordinal, map[i].flags);
        }
    }
    return result;
}

/* When the current pool is destroyed, the default pool becomes current. */
CUresult spw_serve_cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = spw_process_driver()->cuMemPoolDestroy(pool);

    for (int i = 0; result == CUDA_SUCCESS && i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);
        CUmemoryPool current = pool;

        (void)atomic_compare_exchange_strong(&device->current_pool, &current, NULL);
    }
    return result;
}

CUresult spw_serve_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData, CUdeviceptr ptr)
{
    struct spw_pool *pool;

    if (spw_device_owner(ptr, &pool) != NULL) {
        return CUDA_ERROR_INVALID_VALUE; /* as for any pool that was not made for sharing */
    }
    return spw_process_driver()->cuMemPoolExportPointer(shareData, ptr);
}

CUresult spw_serve_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    CUresult result = spw_process_driver()->cuDeviceSetMemPool(dev, pool);
    struct spw_device *device = spw_device_of(dev);

    if (result == CUDA_SUCCESS && device != NULL) {
        atomic_store(&device->current_pool, pool);
    }
    return result;
}

CUresult spw_serve_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                   CUmemoryPool pool)
{
    CUresult result = spw_process_driver()->cuMemSetMemPool(location, type, pool);
    struct spw_device *device;

    if (result == CUDA_SUCCESS && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
        type == CU_MEM_ALLOCATION_TYPE_PINNED) {
        device = spw_device_of(location->id);
        if (device != NULL) {
            atomic_store(&device->current_pool, pool);
        }
    }
    return result;
}
