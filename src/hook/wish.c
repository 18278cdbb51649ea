#include "hook/wish.h"

#include "hook/spill.h"

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

enum spw_err spw_wish_alloc(const struct spw_wish_request *request, struct spw_decision *decision,
                            uint64_t *ret_address)
{
    enum spw_err err = alloc(request, &decision->wish, ret_address);

    if (err != SPW_E_QUOTA) {
        return err;
    }
    spw_policy_beyond(request->device, decision, request->bytes);
    if (decision->rule->action.limit.then == SPW_THEN_FAIL) {
        return err;
    }
    decision->wish.most_bytes = UINT64_MAX;
    return alloc(request, &decision->wish, ret_address);
}
