/* The public interface of include/spillway.h. */
#include "spillway.h"

#include "hook/device.h"
#include "hook/hook.h"

#include <string.h>

/* The device of an ordinal while CUDA is in use, else NULL. */
static struct spw_device *device_at(int ordinal)
{
    if (atomic_load(&spw_hook.state) != SPW_HOOK_RUNNING || ordinal < 0 ||
        ordinal >= spw_hook.device_count) {
        return NULL;
    }
    return &spw_hook.devices[ordinal];
}

SPW_EXPORT int spillway_version(void)
{
    return SPILLWAY_VERSION_MAJOR * 1000 + SPILLWAY_VERSION_MINOR;
}

SPW_EXPORT int spillway_stats(int ordinal, struct spillway_stats *stats)
{
    const struct spw_device *device = device_at(ordinal);
    struct spillway_stats now;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (stats == NULL || stats->size < sizeof(stats->size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    now = (struct spillway_stats){
        .size = stats->size < sizeof(now) ? stats->size : sizeof(now),
        .limit_bytes = spw_counter_get(&device->counters->limit_bytes),
        .live_bytes = spw_counter_get(&device->counters->live_bytes),
        .live_peak_bytes = spw_counter_get(&device->counters->live_peak_bytes),
        .committed_bytes = spw_counter_get(&device->counters->committed_bytes),
        .committed_peak_bytes = spw_counter_get(&device->counters->committed_peak_bytes),
        .host_bytes = spw_counter_get(&device->counters->host_bytes),
        .allocs = spw_counter_get(&device->counters->allocs),
        .frees = spw_counter_get(&device->counters->frees),
        .steals = spw_counter_get(&device->counters->steals),
        .ooms = spw_counter_get(&device->counters->ooms),
    };
    memcpy(stats, &now, now.size);
    return CUDA_SUCCESS;
}

SPW_EXPORT int spillway_trim(int ordinal, size_t keep_bytes)
{
    struct spw_device *device = device_at(ordinal);
    struct spw_pool *pool = device == NULL ? NULL : spw_device_opened(device);

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (pool != NULL) {
        (void)spw_pool_trim(pool, keep_bytes);
    }
    return CUDA_SUCCESS;
}
