#include "device/make.h"

#include "callsite/top_sites.h"
#include "common/options.h"
#include "device/host_budget.h"
#include "device/limits.h"
#include "device/moves.h"
#include "device/one_memory.h"
#include "device/tier.h"
#include "policy/state.h"
#include "process/describe.h"

enum { ARENA_FACTOR = 8, FREES_BITS = 40 /* bits of the numbers of one pool's frees */ };

/* Asks the driver for the device's total and free memory. */
static enum spw_err ask_memory(struct spw_driver *driver, const struct spw_device *device,
                               CUcontext context, uint64_t *ret_total, uint64_t *ret_free)
{
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    CUcontext popped;
    size_t total = 0;
    size_t free = 0;

    if (context != NULL) {
        result = SPW_DRIVER_CALL(driver, device->ordinal, cuCtxPushCurrent_v2, context);
    }
    if (result == CUDA_SUCCESS) {
        result = SPW_DRIVER_CALL(driver, device->ordinal, cuMemGetInfo_v2, &free, &total);
        (void)SPW_DRIVER_CALL(driver, device->ordinal, cuCtxPopCurrent_v2, &popped);
    }
    if (result != CUDA_SUCCESS) {
        result =
            SPW_DRIVER_CALL(driver, device->ordinal, cuDeviceTotalMem_v2, &total, device->handle);
        free = total;
    }
    *ret_total = total;
    *ret_free = free;
    return spw_err_from_driver((int)result);
}

/* Returns the share of free memory that may stay backed. If device and host share one memory, the
 * pool takes only the memory that it needs, unless the user sets more. */
static uint32_t growth(const struct spw_device *device)
{
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_GROWTH, NULL, 0);

    return device->one_memory.is_one && !option.set ? 0 : (uint32_t)option.permille;
}

static uint64_t room_of(int ordinal)
{
    return spw_device_one_memory_room(spw_device_at(ordinal));
}

/* Makes the pool. `most` is the size of device and host memory together. */
static enum spw_err make_pool(const struct spw_device *device, struct spw_backend *backend,
                              uint64_t most, uint64_t limit, bool has_host,
                              struct spw_pool **ret_pool)
{
    uint64_t granule = spw_backend_granule(backend);
    struct spw_pool_config config = {
        .clock = spw_devices.pools_made++ << FREES_BITS,
        .granule_bytes = granule,
        .chunk_bytes = spw_option_get(SPW_OPT_SPILLWAY_CHUNK, NULL, limit).bytes,
        .limit_bytes = limit,
        .host_untried = has_host,
        .growth_permille = growth(device),
        .bounded = device->one_memory.is_one,
        .charges = device->charges,
        .to_commit = &spw_devices.lazies,
        .host_chunks = spw_process_settings()->whole_copies ? NULL : &spw_devices.looked_at,
        .accounts = device->ruled.tallies,
    };
    uint32_t factors = ARENA_FACTOR;
    enum spw_err err = SPW_E_NO_MEMORY;

    config.numbered_heaps = spw_policy_state.region_count;
    config.host_heap = spw_policy_state.hosts;
    factors += config.numbered_heaps + (config.host_heap ? 1 : 0);
    /* If there is too little address space, tries a smaller arena. */
    for (uint64_t factor = factors; factor > 0 && err != SPW_OK; factor /= 2) {
        config.arena_bytes = (most * factor + granule - 1) / granule * granule;
        err = spw_pool_create(&config, spw_backend_vm(backend), device->counters, ret_pool);
    }
    return err;
}

static bool may_move(void)
{
    return !spw_process_is_leaving() && spw_device_may_move();
}

static uint64_t move_wait_ns(void)
{
    enum { MILLION = 1000000 };

    return spw_option_get(SPW_OPT_SPILLWAY_MOVE_WAIT, NULL, 0).bytes * MILLION;
}

/* Makes the tier. Returns NULL if spilling is off, or if there is no memory for the tier. */
static struct spw_migrate *make_tier(const struct spw_device *device, struct spw_backend *backend,
                                     struct spw_pool *pool, struct spw_host_limit limit)
{
    enum spw_overlap overlap = spw_option_get(SPW_OPT_SPILLWAY_OVERLAP, NULL, 0).word;
    const struct spw_migrate_config config = {
        .pool = pool,
        .counters = device->counters,
        .ordinal = device->ordinal,
        .limit = limit,
        .move_wait_ns = move_wait_ns(),
        .overlap = overlap != SPW_OVERLAP_OFF,
        .guarded = overlap == SPW_OVERLAP_GUARDED,
        .may_move = may_move,
        .describe = spw_process_describe,
        .moved = spw_device_record_move,
        .host_room = spw_device_host_room,
        .host_wall = spw_device_host_wall,
        .verify = spw_option_get(SPW_OPT_SPILLWAY_VERIFY, NULL, 0).on,
    };
    struct spw_migrate *tier;

    if (limit.bytes == 0) {
        return NULL;
    }
    return spw_migrate_create(&config, &tier) == SPW_OK ? tier : NULL;
}

enum spw_err spw_device_make(struct spw_device *device, CUcontext context,
                             struct spw_pool **ret_pool, struct spw_backend **ret_backend,
                             struct spw_migrate **ret_tier)
{
    enum { WAIT_FACTOR = 10 };
    struct spw_driver *driver = spw_process_driver();
    uint64_t total, free;
    struct spw_host_limit host;
    struct spw_backend *backend;
    enum spw_err err;

    err = ask_memory(driver, device, context, &total, &free);
    if (err != SPW_OK) {
        return err;
    }
    device->ruled.total_bytes = total;
    spw_device_one_memory_find(device);
    host = spw_device_host_limit(driver, device);
    err = spw_backend_create(driver, device->ordinal, &backend);
    if (err != SPW_OK) {
        return err;
    }
    spw_backend_set_patience(backend, move_wait_ns() * WAIT_FACTOR);
    spw_backend_set_room(backend, room_of);
    err = make_pool(device, backend, total + host.bytes,
                    spw_device_limit(driver, device, total, free), host.bytes > 0, ret_pool);
    if (err != SPW_OK) {
        spw_backend_destroy(backend, true);
        return err;
    }
    *ret_backend = backend;
    *ret_tier = make_tier(device, backend, *ret_pool, host);
    return SPW_OK;
}
