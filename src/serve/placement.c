#include "serve/placement.h"

#include "serve/account.h"
#include "track/device.h"
#include "track/spill.h"
#include "migrate/migrate.h"

_Atomic uint64_t spw_serve_placement_lazies;

static bool is_refused(enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY;
}

/* From the pool as it is: nothing is moved away. */
static enum spw_err alloc_at_once(const struct spw_request *request,
                                  const struct spw_pool_placement *wish, uint64_t *ret_address)
{
    uint64_t host_bytes;

    return spw_pool_alloc_wish(request->pool, request->bytes, request->stream, request->context,
                               request->site, wish, /* anywhere */ false, ret_address, &host_bytes);
}

static enum spw_err alloc(const struct spw_request *request, const struct spw_pool_placement *wish,
                          uint64_t *ret_address)
{
    enum spw_err err = alloc_at_once(request, wish, ret_address);

    return is_refused(err) ? spw_track_spill_alloc(request, wish, err, ret_address) : err;
}

/* Whether blocks can be placed on the host at all; found out at the first wish. */
static bool host_ready(const struct spw_device *device)
{
    const _Atomic uint64_t *limit = &device->counters->host_limit_bytes;

    if (device->tier != NULL && spw_counter_get(limit) == 0) {
        (void)spw_migrate_can_map_host(device->tier);
    }
    return device->tier != NULL && spw_counter_get(limit) > 0;
}

/* A block that is to be on the host, all of it or in part. False when it cannot be had there. */
static bool place_on_host(const struct spw_request *request, const struct spw_decision *decision,
                          uint64_t *ret_address, enum spw_err *ret_err)
{
    if (!host_ready(request->device)) {
        spw_serve_decision_unmet(request->device, decision->rule, "nothing can be on the host");
        return false;
    }
    *ret_err = alloc_at_once(request, &decision->wish, ret_address);
    if (*ret_err == SPW_E_LIMIT && !decision->wish.on_host) {
        /* It is the device that has no room for its share. */
        *ret_err = spw_track_spill_alloc(request, &decision->wish, *ret_err, ret_address);
    }
    if (is_refused(*ret_err)) {
        spw_serve_decision_unmet(request->device, decision->rule,
                                 "the host has no more room for it");
        return false;
    }
    return true;
}

/* A block that is to stay on the device, where others make room for it. */
static enum spw_err place_on_device(const struct spw_request *request,
                                    struct spw_decision *decision, uint64_t *ret_address)
{
    enum spw_err err = alloc(request, &decision->wish, ret_address);

    if (!is_refused(err)) {
        return err;
    }
    spw_serve_decision_unmet(request->device, decision->rule, "the device has no more room for it");
    decision->wish.on_device = false;
    return alloc(request, &decision->wish, ret_address);
}

static enum spw_err place(const struct spw_request *request, struct spw_decision *decision,
                          uint64_t *ret_address)
{
    enum spw_err err;

    if (decision->wish.on_host || decision->wish.host_permille > 0) {
        if (place_on_host(request, decision, ret_address, &err)) {
            return err;
        }
        decision->wish.on_host = false;
        decision->wish.host_permille = 0;
    }
    if (decision->wish.lazy) {
        /* Addresses alone: a device that is full does not matter yet. */
        err = alloc_at_once(request, &decision->wish, ret_address);
        if (!is_refused(err)) {
            return err;
        }
        decision->wish.lazy = false;
    }
    return decision->wish.on_device ? place_on_device(request, decision, ret_address)
                                    : alloc(request, &decision->wish, ret_address);
}

enum spw_err spw_serve_placement_alloc(const struct spw_request *request,
                                       struct spw_decision *decision, uint64_t *ret_address)
{
    enum spw_err err = place(request, decision, ret_address);

    return err == SPW_E_QUOTA &&
                   spw_serve_decision_beyond(request->device, decision, request->bytes)
               ? place(request, decision, ret_address)
               : err;
}

/* Gives the blocks of a device that are without memory their own: moves others away for them, and
 * what is left is on the host. */
static enum spw_err commit(struct spw_device *device, struct spw_pool *pool)
{
    enum spw_err err = spw_pool_commit(pool, /* spilling */ false);

    while (is_refused(err) && spw_track_spill_away(device)) {
        err = spw_pool_commit(pool, /* spilling */ false);
    }
    return is_refused(err) && host_ready(device) ? spw_pool_commit(pool, /* spilling */ true) : err;
}

CUresult spw_serve_placement_commit(const char *api)
{
    for (int i = 0; i < spw_process.device_count && !spw_driver_inside(); i++) {
        struct spw_device *device = &spw_process.devices[i];
        struct spw_pool *pool = spw_track_device_opened(device);
        enum spw_err err = pool != NULL ? commit(device, pool) : SPW_OK;

        if (SPW_UNLIKELY(spw_process.check) && pool != NULL) {
            spw_track_device_check(device, pool);
        }
        if (err != SPW_OK) {
            struct spw_pool_usage usage;

            spw_pool_usage(pool, &usage);
            return spw_serve_account_oom(device, pool, api, usage.lazy, /* site */ 0, err);
        }
    }
    return CUDA_SUCCESS;
}
