#include "serve/immovable.h"

#include "pool/attributes.h"
#include "serve/placement.h"
#include "track/lookup.h"

void spw_serve_immovable_mark(CUdeviceptr address, size_t bytes)
{
    static const struct spw_treatment known = {.fix = SPW_FIXED_KNOWN};
    struct spw_pool *pool;

    if (atomic_load_explicit(&spw_process.state, memory_order_acquire) != SPW_PROCESS_RUNNING ||
        spw_track_device_owner(address, &pool) == NULL) {
        return;
    }
    (void)spw_pool_treat(pool, address, bytes, &known);
    if (spw_serve_placement_is_due()) {
        /* Without memory for the block, the real registration fails and reports it. */
        (void)spw_serve_placement_commit("registration");
    }
}
