#include "track/spill.h"

#include <dlfcn.h>
#include <stdio.h>

#include "callsite/capture.h"
#include "callsite/top_sites.h"
#include "common/path.h"
#include "common/uncancelled.h"
#include "migrate/migrate.h"
#include "track/caller.h"
#include "track/device.h"
#include "track/lease.h"
#include "track/native.h"
#include "track/unseen.h"

/* The file name of the library that made the call of the runtime under way; NULL: not known. */
static const char *caller_library(void)
{
    Dl_info info;

    if (spw_track_outer.fn == SPW_FN_COUNT || dladdr(spw_track_outer.caller, &info) == 0 ||
        info.dli_fname == NULL) {
        return NULL;
    }
    return spw_path_name(info.dli_fname);
}

/* The thread's last request that was refused once. */
static _Thread_local struct {
    uint64_t bytes; /* 0: none, or it was repeated */
    uint64_t allocs;
    const void *frame;
    struct spw_track_postponed postponed; /* without a device: none, or it was given up */
} last __attribute__((tls_model("initial-exec")));

bool spw_track_spill_asks_again(const struct spw_device *device, uint64_t bytes)
{
    uint64_t allocs = spw_counter_get(&device->counters->allocs);

    if (spw_track_outer.fn != SPW_FN_cudaMalloc || spw_track_caller() != SPW_CALLER_PYTORCH ||
        spw_track_native == SPW_NATIVE_PRIVATE ||
        atomic_load(&spw_track_driver()->captures_open) > 0) {
        return false;
    }
    last.postponed.device = NULL;
    if (last.bytes != 0 && (bytes == last.bytes || allocs == last.allocs)) {
        last.bytes = 0;
        return false;
    }
    last.bytes = bytes;
    last.allocs = allocs;
    last.frame = spw_track_outer.frame;
    return true;
}

/* A higher frame shows that the function that called cudaMalloc has returned. While that function
 * runs, it may also read the figures, for a warning. */
bool spw_track_spill_gave_up(struct spw_track_postponed *ret_postponed)
{
    const struct spw_device *device = last.postponed.device;

    if (SPW_LIKELY(device == NULL) || spw_track_outer.fn != SPW_FN_cudaMemGetInfo ||
        spw_track_caller() != SPW_CALLER_PYTORCH ||
        (uintptr_t)spw_track_outer.frame <= (uintptr_t)last.frame ||
        spw_counter_get(&device->counters->allocs) != last.allocs) {
        return false;
    }
    *ret_postponed = last.postponed;
    last.postponed.device = NULL;
    return true;
}

void spw_track_spill_describe(uint32_t site, char *text, size_t capacity)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);
    const char *api =
        spw_track_outer.fn != SPW_FN_COUNT ? spw_driver_symbol(spw_track_outer.fn) : "driver API";
    const char *library = caller_library();
    char label[SPW_CALLSITE_LABEL];

    if (known != NULL) {
        spw_callsite_label_of(site, label, sizeof(label));
        (void)snprintf(text, capacity, "%s, %s", label, known->api);
    } else {
        (void)snprintf(text, capacity, "%s%s%s", api, library != NULL ? ", " : "",
                       library != NULL ? library : "");
    }
}

/* The host tier of a device; NULL: none. It is read once, since another thread may close it. */
static struct spw_migrate *tier_of(const struct spw_device *device)
{
    return atomic_load_explicit(&device->tier, memory_order_acquire);
}

/* Gives up the moves that are in flight, on every device. */
static void give_up(void)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_migrate *tier = tier_of(&spw_process.devices[i]);

        if (tier != NULL) {
            spw_migrate_give_up(tier);
        }
    }
}

void spw_track_spill_settle(const struct spw_device *device)
{
    struct spw_migrate *tier = tier_of(device);

    if (tier != NULL && spw_track_spill_may_move()) {
        spw_migrate_settle(tier);
    }
}

void spw_track_spill_trim(struct spw_device *device, uint64_t keep_bytes)
{
    struct spw_pool *pool = spw_track_device_opened(device);

    if (pool != NULL) {
        spw_track_spill_settle(device);
        (void)spw_pool_trim(pool, keep_bytes);
        (void)spw_pool_trim_host(pool);
    }
}

bool spw_track_spill_may_move(void)
{
    static atomic_flag given_up = ATOMIC_FLAG_INIT;

    if (atomic_load(&spw_track_driver()->captures_open) > 0) {
        return false;
    }
    if (SPW_LIKELY(!spw_track_unseen())) {
        return true;
    }
    if (!atomic_flag_test_and_set(&given_up)) {
        give_up();
    }
    return false;
}

/* spw_track_spill_may_move for a device that is short of memory. Counts permanent refusals. */
static bool may_make_room(const struct spw_device *device)
{
    bool may = spw_track_spill_may_move();

    spw_counter_add(&device->counters->unseen_refusals, !may && spw_track_unseen());
    return may;
}

bool spw_track_spill_away(struct spw_device *device)
{
    struct spw_migrate *tier = tier_of(device);

    return tier != NULL && may_make_room(device) && spw_migrate_evict_some(tier);
}

bool spw_track_spill_yield(struct spw_device *device, struct spw_pool *pool)
{
    return spw_track_spill_away(device) && spw_pool_trim(pool, 0) > 0;
}

/* True when the limit could hold `bytes` beside all that cannot move. */
static bool is_possible(const struct spw_counters *counters, uint64_t bytes)
{
    uint64_t fixed = spw_counter_get(&counters->vmm_bytes);
    uint64_t limit = spw_counter_get(&counters->limit_bytes);

    return fixed <= limit && bytes <= limit - fixed;
}

/* True when `bytes` of the caller may exceed the limit: libraries that share memory have no use for
 * the host, and the default limit leaves memory for them. */
static bool may_exceed(const struct spw_counters *counters, uint64_t bytes)
{
    return bytes <= spw_counter_get(&counters->limit_bytes) &&
           spw_track_caller() == SPW_CALLER_SHARES;
}

enum spw_err spw_track_spill_charge(struct spw_device *device, struct spw_pool *pool,
                                    uint64_t bytes, uint32_t site)
{
    enum spw_err err = spw_pool_charge(pool, bytes, site, /* beyond */ false);

    while (SPW_UNLIKELY(err == SPW_E_LIMIT) && is_possible(device->counters, bytes) &&
           spw_track_spill_away(device)) {
        err = spw_pool_charge(pool, bytes, site, /* beyond */ false);
    }
    if (SPW_UNLIKELY(err == SPW_E_LIMIT) && may_exceed(device->counters, bytes)) {
        err = spw_pool_charge(pool, bytes, site, /* beyond */ true);
    }
    return err;
}

enum spw_err spw_track_spill_charge_host(struct spw_device *device, uint64_t bytes, uint32_t site,
                                         enum spw_err refused, CUmemLocation *ret_place)
{
    const struct spw_request request = {.bytes = bytes, .site = site};
    struct spw_pool *pool = spw_track_device_opened(device);
    struct spw_migrate *tier = tier_of(device);
    struct spw_backend *backend = atomic_load(&device->backend);

    if (pool == NULL || backend == NULL || tier == NULL || !spw_migrate_can_map_host(tier) ||
        spw_pool_charge_host(pool, bytes, site, /* wished */ refused == SPW_OK) != SPW_OK) {
        return refused == SPW_OK ? SPW_E_LIMIT : refused;
    }
    if (refused != SPW_OK) {
        spw_migrate_announce(tier, &request, bytes, /* moved */ false);
    }
    *ret_place = spw_backend_host_place(backend);
    return SPW_OK;
}

bool spw_track_spill_follows(const struct spw_device *device)
{
    const struct spw_migrate *tier = tier_of(device);

    return tier != NULL && spw_migrate_wants_stream(tier) && spw_track_spill_may_move();
}

void spw_track_spill_expect(struct spw_device *device, const uint64_t *addresses, size_t count,
                            const struct spw_stream *stream)
{
    struct spw_migrate *tier = tier_of(device);

    if (tier != NULL) {
        spw_migrate_before_submit(tier, addresses, count, stream);
    }
}

bool spw_track_spill_fetch(struct spw_device *device, const uint64_t *addresses, size_t count)
{
    struct spw_migrate *tier = tier_of(device);

    return tier == NULL || spw_migrate_fetch(tier, addresses, count);
}

void spw_track_spill_use(struct spw_device *device, const uint64_t *addresses, size_t count,
                         bool kernel)
{
    struct spw_migrate *tier = tier_of(device);

    if (tier != NULL) {
        spw_migrate_record(tier, addresses, count, kernel);
    }
}

void spw_track_spill_use_among(struct spw_device *device, const uint64_t *addresses, size_t count)
{
    struct spw_migrate *tier = tier_of(device);

    if (tier != NULL) {
        spw_migrate_record_partial(tier, addresses, count);
    }
}

void spw_track_spill_meet_kernel(struct spw_device *device)
{
    struct spw_migrate *tier = tier_of(device);

    if (tier != NULL) {
        spw_migrate_record_new_kernel(tier);
    }
}

bool spw_track_spill_has_room(struct spw_device *device)
{
    struct spw_migrate *tier = tier_of(device);

    return tier != NULL && spw_migrate_has_room(tier);
}

void spw_track_spill_prepare(struct spw_device *device)
{
    struct spw_pool *pool = spw_track_device_opened(device);
    struct spw_migrate *tier = tier_of(device);

    if (atomic_load(&spw_track_driver()->captures_open) > 0) {
        return;
    }
    if (pool != NULL) {
        spw_pool_fence_frees(pool);
    }
    if (tier != NULL) {
        spw_migrate_prepare(tier);
    }
}

void spw_track_spill_rest(struct spw_device *device)
{
    struct spw_migrate *tier = tier_of(device);
    struct spw_pool *pool = spw_track_device_opened(device);

    if (tier != NULL && spw_counter_get(&device->counters->host_used_bytes) > 0 &&
        spw_track_spill_may_move() && !atomic_load(&spw_process.leaving)) {
        spw_migrate_idle(tier);
        if (SPW_UNLIKELY(spw_process.check) && pool != NULL) {
            spw_track_device_check(device, pool);
        }
    }
}

enum spw_err spw_track_spill_alloc(const struct spw_call *call, enum spw_err refused,
                                   struct spw_result *ret_result)
{
    SPW_UNCANCELLED;
    struct spw_migrate *tier = tier_of(call->device);
    struct spw_request asked = call->asked;

    if (refused == SPW_E_NO_MEMORY && spw_track_ops.ask_others(call->device, asked.bytes)) {
        refused = spw_pool_alloc(call->pool, &asked, ret_result);
        if (refused != SPW_E_NO_MEMORY && refused != SPW_E_LIMIT) {
            return refused;
        }
    }
    if (tier == NULL) {
        return refused;
    }
    asked.may_move = may_make_room(call->device);
    if (!spw_track_spill_asks_again(call->device, asked.bytes)) {
        return spw_migrate_alloc(tier, &asked, refused, ret_result);
    }
    last.postponed = (struct spw_track_postponed){call->device, asked.bytes, asked.site, refused};
    return SPW_E_AGAIN;
}

bool spw_track_spill_make_room(void)
{
    bool made = false;

    if (!spw_track_serves()) {
        return false;
    }
    made = spw_track_device_sweep();
    spw_track_lease_enter();
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_device *device = &spw_process.devices[i];
        struct spw_pool *pool = spw_track_device_opened(device);

        if (pool != NULL && (spw_pool_trim(pool, 0) > 0 || spw_track_spill_yield(device, pool) ||
                             spw_pool_trim_pending(pool) > 0)) {
            spw_counter_add(&device->counters->forward_retries, 1);
            made = true;
        }
    }
    spw_track_lease_leave();
    return made;
}
