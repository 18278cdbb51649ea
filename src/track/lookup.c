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

struct spw_device *spw_track_device_of_pool(CUmemoryPool pool)
{
    for (int i = 0; pool != NULL && i < spw_process.device_count; i++) {
        if (spw_process.devices[i].default_pool == pool) {
            return &spw_process.devices[i];
        }
    }
    return NULL;
}
