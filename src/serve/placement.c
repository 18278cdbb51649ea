#include "serve/placement.h"

#include "device/device.h"
#include "device/lease.h"
#include "device/spill.h"
#include "migrate/migrate.h"
#include "serve/account.h"
#include "service/share.h"

static bool is_refused(enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY;
}

/* Allocates from the pool without moving blocks. */
static enum spw_err alloc_at_once(const struct spw_call *call, struct spw_result *ret_result)
{
    return spw_pool_alloc(call->pool, &call->asked, ret_result);
}

enum spw_err spw_serve_placement_refused(const struct spw_call *call, enum spw_err refused,
                                         struct spw_result *ret_result)
{
    if (refused == SPW_E_NO_MEMORY && spw_service_share_ask(call->device, call->asked.bytes)) {
        refused = alloc_at_once(call, ret_result);
    }
    return is_refused(refused) ? spw_device_alloc(call->device, &call->asked, refused, ret_result)
                               : refused;
}

static enum spw_err alloc(const struct spw_call *call, struct spw_result *ret_result)
{
    enum spw_err err = alloc_at_once(call, ret_result);

    return is_refused(err) ? spw_serve_placement_refused(call, err, ret_result) : err;
}

/* Returns true if blocks can be placed on the host. This is tested at the first request. */
static bool host_ready(const struct spw_device *device)
{
    const _Atomic uint64_t *limit = &device->counters->host_limit_bytes;
    struct spw_migrate *tier = atomic_load(&device->tier);

    if (tier != NULL && spw_counter_get(limit) == 0) {
        (void)spw_migrate_can_map_host(tier);
    }
    return tier != NULL && spw_counter_get(limit) > 0;
}

/* Places a block if its part on the device found no room. Other blocks make room, as for a block
 * without a rule. Returns false if that is also impossible. *ret_err has the earlier error. */
static bool place_parts(const struct spw_call *call, const struct spw_decision *decision,
                        struct spw_result *ret_result, enum spw_err *ret_err)
{
    struct spw_migrate *tier = atomic_load(&call->device->tier);

    if (*ret_err == SPW_E_LIMIT || (tier != NULL && spw_migrate_can_map_host(tier))) {
        *ret_err = spw_serve_placement_refused(call, *ret_err, ret_result);
    }
    if (is_refused(*ret_err) || (*ret_err == SPW_OK && ret_result->host_bytes == 0)) {
        spw_policy_decision_unmet(&call->device->ruled, decision->rule,
                                  "there is no room for both parts of it");
    }
    return !is_refused(*ret_err);
}

/* Places a block, or a part of it, on the host. Returns false if that is impossible. */
static bool place_on_host(const struct spw_call *call, const struct spw_decision *decision,
                          struct spw_result *ret_result, enum spw_err *ret_err)
{
    if (!host_ready(call->device)) {
        spw_policy_decision_unmet(&call->device->ruled, decision->rule,
                                  "spilling to the host is not possible");
        return false;
    }
    *ret_err = alloc_at_once(call, ret_result);
    if (is_refused(*ret_err) && !decision->placement.on_host) {
        return place_parts(call, decision, ret_result, ret_err);
    }
    if (is_refused(*ret_err)) {
        spw_policy_decision_unmet(&call->device->ruled, decision->rule,
                                  "the host has no more room for it");
        return false;
    }
    return true;
}

/* Places a block on the device. Other blocks make room for it. */
static enum spw_err place_on_device(const struct spw_call *call, struct spw_decision *decision,
                                    struct spw_result *ret_result)
{
    enum spw_err err = alloc(call, ret_result);

    if (!is_refused(err)) {
        return err;
    }
    spw_policy_decision_unmet(&call->device->ruled, decision->rule,
                              "the device has no more room for it");
    decision->placement.on_device = false;
    return alloc(call, ret_result);
}

static enum spw_err place(const struct spw_call *call, struct spw_decision *decision,
                          struct spw_result *ret_result)
{
    enum spw_err err;

    if (decision->placement.on_host || decision->placement.host_permille > 0) {
        if (place_on_host(call, decision, ret_result, &err)) {
            return err;
        }
        decision->placement.on_host = false;
        decision->placement.host_permille = 0;
    }
    if (decision->placement.lazy) {
        /* This allocates only addresses, so it does not matter yet whether the device is full. */
        err = alloc_at_once(call, ret_result);
        if (!is_refused(err)) {
            return err;
        }
        decision->placement.lazy = false;
    }
    return decision->placement.on_device ? place_on_device(call, decision, ret_result)
                                         : alloc(call, ret_result);
}

enum spw_err spw_serve_placement_alloc(const struct spw_call *call, struct spw_decision *decision,
                                       struct spw_result *ret_result)
{
    struct spw_call placed = *call;
    enum spw_err err;

    placed.asked.placement = &decision->placement;
    err = place(&placed, decision, ret_result);
    return err == SPW_E_QUOTA &&
                   spw_policy_decision_beyond(&call->device->ruled, decision, call->asked.bytes)
               ? place(&placed, decision, ret_result)
               : err;
}

/* Backs a device's lazy blocks. If the device is full, moves other blocks away. If no block can
 * move, places lazy blocks on the host. */
static enum spw_err commit(struct spw_device *device, struct spw_pool *pool)
{
    enum spw_err err = spw_pool_commit(pool, /* spilling */ false);

    while (is_refused(err) && spw_device_evict(device)) {
        err = spw_pool_commit(pool, /* spilling */ false);
    }
    return is_refused(err) && host_ready(device) ? spw_pool_commit(pool, /* spilling */ true) : err;
}

static CUresult commit_all(const char *api)
{
    for (int i = 0; i < spw_device_count() && !spw_driver_inside(); i++) {
        struct spw_device *device = spw_device_at(i);
        struct spw_pool *pool = spw_device_opened(device);
        enum spw_err err = pool != NULL ? commit(device, pool) : SPW_OK;

        if (SPW_UNLIKELY(spw_process_settings()->check) && pool != NULL) {
            spw_device_check(device, pool);
        }
        if (err != SPW_OK) {
            struct spw_pool_usage usage;

            spw_pool_usage(pool, &usage);
            return spw_serve_account_oom(device, pool, api, usage.lazy, /* site */ 0, err);
        }
    }
    return CUDA_SUCCESS;
}

CUresult spw_serve_placement_commit(const char *api)
{
    CUresult result;

    spw_device_lease_enter();
    result = commit_all(api);
    spw_device_lease_leave();
    return result;
}
