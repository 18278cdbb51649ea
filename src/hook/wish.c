#include "hook/wish.h"

#include "hook/spill.h"
#include "tier/tier.h"

static enum spw_err alloc(const struct spw_wish_request *request, const struct spw_pool_wish *wish,
                          uint64_t *ret_address)
{
    uint64_t host_bytes;
    enum spw_err err =
        spw_pool_alloc_wish(request->pool, request->bytes, request->stream, request->context,
                            request->site, wish, /* anywhere */ false, ret_address, &host_bytes);

    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY
               ? spw_spill_alloc(request->device, request->bytes, request->stream, request->context,
                                 request->site, wish, err, ret_address)
               : err;
}

/* Whether blocks can be placed on the host at all; found out at the first wish. */
static bool host_ready(const struct spw_device *device)
{
    return device->tier != NULL && (spw_counter_get(&device->counters->host_limit_bytes) > 0 ||
                                    spw_host_tier_ready(device->tier));
}

static bool is_refused(enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY;
}

/* A block that is to be on the host, all of it or in part. False when it cannot be had there. */
static bool place_on_host(const struct spw_wish_request *request,
                          const struct spw_decision *decision, uint64_t *ret_address,
                          enum spw_err *ret_err)
{
    uint64_t host_bytes;

    if (!host_ready(request->device)) {
        spw_policy_unmet(request->device, decision->rule, "nothing can be on the host");
        return false;
    }
    *ret_err = spw_pool_alloc_wish(request->pool, request->bytes, request->stream, request->context,
                                   request->site, &decision->wish,
                                   /* anywhere */ false, ret_address, &host_bytes);
    if (*ret_err == SPW_E_LIMIT && !decision->wish.on_host) {
        /* It is the device that has no room for its share. */
        *ret_err =
            spw_spill_alloc(request->device, request->bytes, request->stream, request->context,
                            request->site, &decision->wish, *ret_err, ret_address);
    }
    if (is_refused(*ret_err)) {
        spw_policy_unmet(request->device, decision->rule, "the host has no more room for it");
        return false;
    }
    return true;
}

/* A block that is to stay on the device, where others make room for it. */
static enum spw_err place_on_device(const struct spw_wish_request *request,
                                    struct spw_decision *decision, uint64_t *ret_address)
{
    enum spw_err err = alloc(request, &decision->wish, ret_address);

    if (!is_refused(err)) {
        return err;
    }
    spw_policy_unmet(request->device, decision->rule, "the device has no more room for it");
    decision->wish.on_device = false;
    return alloc(request, &decision->wish, ret_address);
}

static enum spw_err place(const struct spw_wish_request *request, struct spw_decision *decision,
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
    return decision->wish.on_device ? place_on_device(request, decision, ret_address)
                                    : alloc(request, &decision->wish, ret_address);
}

enum spw_err spw_wish_alloc(const struct spw_wish_request *request, struct spw_decision *decision,
                            uint64_t *ret_address)
{
    int then = decision->rule->action.limit.then;
    enum spw_err err = place(request, decision, ret_address);

    if (err != SPW_E_QUOTA) {
        return err;
    }
    if (then != SPW_THEN_SPILL) {
        spw_policy_beyond(request->device, decision, request->bytes);
    }
    if (then == SPW_THEN_FAIL) {
        return err;
    }
    decision->wish.most_bytes = UINT64_MAX;
    decision->wish.on_host = then == SPW_THEN_SPILL;
    decision->wish.on_device = decision->wish.on_device && then != SPW_THEN_SPILL;
    return place(request, decision, ret_address);
}
