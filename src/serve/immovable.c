#include "serve/immovable.h"

#include "device/lease.h"
#include "device/lookup.h"
#include "pool/pool.h"
#include "serve/placement.h"

void spw_serve_immovable_mark(CUdeviceptr address, size_t bytes)
{
    static const struct spw_block_attributes known = {.fix = SPW_FIXED_SHARED};
    struct spw_pool *pool;
    bool ours;

    if (!spw_process_is_running()) {
        return;
    }
    spw_device_lease_enter();
    ours = spw_device_owner(address, &pool) != NULL;
    if (ours) {
        (void)spw_pool_set_attributes(pool, address, bytes, &known);
    }
    spw_device_lease_leave();
    if (ours && spw_serve_placement_is_due()) {
        /* If there is no memory for the block, the real registration fails and reports this. */
        (void)spw_serve_placement_commit("registration");
    }
}
