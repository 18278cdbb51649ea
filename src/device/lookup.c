#include "device/lookup.h"

struct spw_device *spw_device_of(CUdevice handle)
{
    for (int i = 0; i < spw_device_count(); i++) {
        if (spw_device_at(i)->handle == handle) {
            return spw_device_at(i);
        }
    }
    return NULL;
}

CUmemoryPool spw_device_ask_pool(struct spw_device *device)
{
    struct spw_driver *driver = spw_process_driver();
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

struct spw_device *spw_device_of_pool(CUmemoryPool pool)
{
    for (int asks = 0; pool != NULL && asks < 2; asks++) {
        for (int i = 0; i < spw_device_count(); i++) {
            struct spw_device *device = spw_device_at(i);

            if ((asks || atomic_load(&device->default_pool_asked)) &&
                spw_device_default_pool(device) == pool) {
                return device;
            }
        }
    }
    return NULL;
}

bool spw_device_find_all(struct spw_driver *driver)
{
    int count = 0;

    if (driver->cuDeviceGetCount == NULL || driver->cuDeviceGet == NULL ||
        SPW_DRIVER_CALL(driver, -1, cuDeviceGetCount, &count) != CUDA_SUCCESS) {
        return false;
    }
    spw_devices.count = count < SPW_DEVICES_MAX ? count : SPW_DEVICES_MAX;
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);

        device->ordinal = i;
        device->handle = i;
        atomic_store(&device->default_pool_asked, false);
        atomic_store(&device->current_pool, NULL);
        (void)SPW_DRIVER_CALL(driver, -1, cuDeviceGet, &device->handle, i);
    }
    return true;
}
