#include "device/spill.h"

#include "device/device.h"
#include "device/lease.h"
#include "device/one_memory.h"
#include "migrate/migrate.h"
#include "process/caller.h"
#include "process/native.h"
#include "process/unseen.h"
#include "system/log.h"
#include "system/uncancelled.h"

/* The request of the thread that was refused last. */
static _Thread_local struct {
    uint64_t bytes; /* 0: there is none, or it was repeated */
    uint64_t allocs;
    const void *frame;
    struct spw_device_postponed postponed; /* without a device, there is none, or the program has
                                              already got the error */
} last __attribute__((tls_model("initial-exec")));

bool spw_device_asks_again(const struct spw_device *device, uint64_t bytes)
{
    uint64_t allocs = spw_counter_get(&device->counters->allocs);

    if (spw_process_outer.fn != SPW_FN_cudaMalloc || spw_process_caller() != SPW_CALLER_PYTORCH ||
        spw_process_native == SPW_NATIVE_PRIVATE ||
        atomic_load(&spw_process_driver()->captures_open) > 0) {
        return false;
    }
    last.postponed.device = NULL;
    if (last.bytes != 0 && (bytes == last.bytes || allocs == last.allocs)) {
        last.bytes = 0;
        return false;
    }
    last.bytes = bytes;
    last.allocs = allocs;
    last.frame = spw_process_outer.frame;
    return true;
}

/* If the frame is higher, the function that called cudaMalloc has returned. While that function
 * still runs, it may also call cudaMemGetInfo for a warning. */
bool spw_device_gave_up(struct spw_device_postponed *ret_postponed)
{
    const struct spw_device *device = last.postponed.device;

    if (SPW_LIKELY(device == NULL) || spw_process_outer.fn != SPW_FN_cudaMemGetInfo ||
        spw_process_caller() != SPW_CALLER_PYTORCH ||
        (uintptr_t)spw_process_outer.frame <= (uintptr_t)last.frame ||
        spw_counter_get(&device->counters->allocs) != last.allocs) {
        return false;
    }
    *ret_postponed = last.postponed;
    last.postponed.device = NULL;
    return true;
}

void spw_device_settle(const struct spw_device *device)
{
    struct spw_migrate *tier = spw_device_tier(device);

    if (tier != NULL && spw_device_may_move()) {
        spw_migrate_settle(tier);
    }
}

void spw_device_trim(struct spw_device *device, uint64_t keep_bytes)
{
    struct spw_pool *pool = spw_device_opened(device);

    if (pool != NULL) {
        spw_device_settle(device);
        (void)spw_pool_trim(pool, keep_bytes);
        (void)spw_pool_trim_host(pool);
    }
}

bool spw_device_allows(struct spw_device *device, uint64_t bytes)
{
    if (!spw_device_has_one_memory(device) || bytes <= spw_device_one_memory_room(device)) {
        return true;
    }
    spw_device_trim(device, 0);
    return bytes <= spw_device_one_memory_room(device);
}

/* Like spw_device_may_move, for a device that is short of memory. Counts permanent refusals. */
static bool may_make_room(const struct spw_device *device)
{
    bool may = spw_device_may_move();

    spw_counter_add(&device->counters->unseen_refusals, !may && spw_process_unseen());
    return may;
}

bool spw_device_evict(struct spw_device *device)
{
    struct spw_migrate *tier = spw_device_tier(device);

    return tier != NULL && may_make_room(device) && spw_migrate_evict(tier);
}

bool spw_device_yield(struct spw_device *device, struct spw_pool *pool)
{
    return spw_device_evict(device) && spw_pool_trim(pool, 0) > 0;
}

/* Returns true if the limit leaves room for `bytes` in addition to all memory that cannot move. */
static bool is_possible(const struct spw_counters *counters, uint64_t bytes)
{
    uint64_t fixed = spw_counter_get(&counters->vmm_bytes);
    uint64_t limit = spw_counter_get(&counters->limit_bytes);

    return fixed <= limit && bytes <= limit - fixed;
}

/* Returns true if `bytes` of the caller may exceed the limit. Libraries that share memory cannot
 * use host memory, and the default limit leaves memory for them. */
static bool may_exceed(const struct spw_device *device, uint64_t bytes)
{
    return bytes <= spw_counter_get(&device->counters->limit_bytes) &&
           spw_process_caller() == SPW_CALLER_SHARES && bytes <= spw_device_one_memory_room(device);
}

enum spw_err spw_device_charge(struct spw_device *device, struct spw_pool *pool, uint64_t bytes,
                               uint32_t site)
{
    enum spw_err err = spw_pool_charge(pool, bytes, site, /* beyond */ false);

    while (SPW_UNLIKELY(err == SPW_E_LIMIT) && is_possible(device->counters, bytes) &&
           spw_device_evict(device)) {
        err = spw_pool_charge(pool, bytes, site, /* beyond */ false);
    }
    if (SPW_UNLIKELY(err == SPW_E_LIMIT) && may_exceed(device, bytes)) {
        err = spw_pool_charge(pool, bytes, site, /* beyond */ true);
    }
    return err;
}

enum spw_err spw_device_charge_host(struct spw_device *device, uint64_t bytes, uint32_t site,
                                    enum spw_err refused, CUmemLocation *ret_place)
{
    const struct spw_request request = {.bytes = bytes, .site = site};
    struct spw_pool *pool = spw_device_opened(device);
    struct spw_migrate *tier = spw_device_tier(device);
    struct spw_backend *backend = atomic_load(&device->backend);

    if (pool == NULL || backend == NULL || tier == NULL || !spw_migrate_can_map_host(tier) ||
        spw_pool_charge_host(pool, bytes, site, /* requested */ refused == SPW_OK) != SPW_OK) {
        return refused == SPW_OK ? SPW_E_LIMIT : refused;
    }
    if (refused != SPW_OK) {
        spw_migrate_announce(tier, &request, bytes, /* moved */ false);
    }
    *ret_place = spw_backend_host_place(backend);
    return SPW_OK;
}

bool spw_device_fetch(struct spw_device *device, const uint64_t *addresses, size_t count)
{
    struct spw_migrate *tier = spw_device_tier(device);

    return tier == NULL || spw_migrate_fetch(tier, addresses, count);
}

bool spw_device_has_room(struct spw_device *device)
{
    struct spw_migrate *tier = spw_device_tier(device);

    return tier != NULL && spw_migrate_has_room(tier);
}

void spw_device_prepare(struct spw_device *device)
{
    struct spw_pool *pool = spw_device_opened(device);
    struct spw_migrate *tier = spw_device_tier(device);

    if (atomic_load(&spw_process_driver()->captures_open) > 0) {
        return;
    }
    if (pool != NULL) {
        spw_pool_fence_frees(pool);
    }
    if (tier != NULL) {
        spw_migrate_prepare(tier);
    }
}

void spw_device_idle(struct spw_device *device)
{
    struct spw_migrate *tier = spw_device_tier(device);
    struct spw_pool *pool = spw_device_opened(device);

    if (tier != NULL && spw_counter_get(&device->counters->host_used_bytes) > 0 &&
        spw_device_may_move() && !spw_process_is_leaving()) {
        spw_migrate_idle(tier);
        if (SPW_UNLIKELY(spw_process_settings()->check) && pool != NULL) {
            spw_device_check(device, pool);
        }
    }
}

static void explain_fault(void)
{
    SPW_UNCANCELLED;

    spw_log_always(
        "the device reports an illegal address. With SPILLWAY_OVERLAP=guarded, moved memory is "
        "unmapped until a call names it among its arguments. A kernel that reads addresses from "
        "memory can therefore cause this error. No content was lost before it. Such a program "
        "needs SPILLWAY_OVERLAP=safe");
}

/* Several threads may get the error at once, and the first that goes on may end the program. So
 * each waits until the explanation is written. */
void spw_device_explain_fault(void)
{
    uint64_t detached = 0;

    for (int i = 0; i < spw_device_count(); i++) {
        detached += spw_counter_get(&spw_device_at(i)->counters->detached_bytes);
    }
    if (detached > 0) {
        (void)pthread_once(&spw_devices.fault_explained, explain_fault);
    }
}

enum spw_err spw_device_alloc(struct spw_device *device, const struct spw_request *request,
                              enum spw_err refused, struct spw_result *ret_result)
{
    SPW_UNCANCELLED;
    struct spw_migrate *tier = spw_device_tier(device);
    struct spw_request asked = *request;

    if (tier == NULL) {
        return refused;
    }
    asked.may_move = may_make_room(device);
    if (!spw_device_asks_again(device, asked.bytes)) {
        return spw_migrate_alloc(tier, &asked, refused, ret_result);
    }
    last.postponed = (struct spw_device_postponed){device, asked.bytes, asked.site, refused};
    return SPW_E_AGAIN;
}

bool spw_device_make_host_room(void)
{
    bool made = false;

    if (!spw_process_serves()) {
        return false;
    }
    spw_device_lease_enter();
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);
        struct spw_pool *pool = spw_device_opened(device);

        if (pool != NULL && spw_pool_trim_host(pool) > 0) {
            spw_counter_add(&device->counters->forward_retries, 1);
            made = true;
        }
    }
    spw_device_lease_leave();
    return made;
}

bool spw_device_make_room(void)
{
    bool made = false;

    if (!spw_process_serves()) {
        return false;
    }
    made = spw_device_sweep();
    spw_device_lease_enter();
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);
        struct spw_pool *pool = spw_device_opened(device);

        if (pool != NULL && (spw_pool_trim(pool, 0) > 0 || spw_device_yield(device, pool) ||
                             spw_pool_trim_pending(pool) > 0)) {
            spw_counter_add(&device->counters->forward_retries, 1);
            made = true;
        }
    }
    spw_device_lease_leave();
    return made;
}
