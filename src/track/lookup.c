#include "track/lookup.h"

struct spw_device *spw_track_device_of(CUdevice handle)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        if (spw_process.devices[i].handle == handle) {
            return &spw_process.devices[i];
        }
    }
    return NULL;
}

CUmemoryPool spw_track_device_ask_pool(struct spw_device *device)
{
    struct spw_driver *driver = spw_track_driver();
    CUmemoryPool pool = NULL;

    if (driver->cuDeviceGetDefaultMemPool == NULL ||
        SPW_DRIVER_CALL(driver, -1, cuDeviceGetDefaultMemPool, &pool, device->handle) !=
            CUDA_SUCCESS) {
        pool = NULL;
    }
    atomic_store(&device->default_pool, pool);
    atomic_store_explicit(&device->default_pool_asked, true, memory_order_release);
    return pool;
}

struct spw_device *spw_track_device_of_pool(CUmemoryPool pool)
{
    for (int asks = 0; pool != NULL && asks < 2; asks++) {
        for (int i = 0; i < spw_process.device_count; i++) {
            struct spw_device *device = &spw_process.devices[i];

            if ((asks || atomic_load(&device->default_pool_asked)) &&
                spw_track_device_default_pool(device) == pool) {
                return device;
            }
        }
    }
    return NULL;
}
