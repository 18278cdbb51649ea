/* Figures of live memory: counters of the device, and charges of sites. The caller holds the pool's
 * lock. */
#pragma once

#include "pool/alloc/state.h"

/* The slow half of spw_pool_count_live: records a new peak. */
void spw_pool_count_peak(struct spw_pool *pool, struct spw_counters *counters);

/* Counts `change` bytes, of blocks or foreign charges. They are positive if memory is allocated,
 * negative if it is freed. */
static inline void spw_pool_count_live_in(struct spw_counters *counters, struct spw_pool *pool,
                                          int64_t change, bool ordered, uint32_t site)
{
    spw_counter_shift(&counters->live_bytes, change);
    spw_counter_shift(&counters->async_live_bytes, ordered ? change : 0);
    if (pool->figures.charges != NULL) {
        spw_pool_charges_move(pool->figures.charges, site, change);
    }
    if (spw_counter_get(&counters->live_bytes) > spw_counter_get(&counters->live_peak_bytes) ||
        spw_counter_get(&counters->async_live_bytes) >
            spw_counter_get(&counters->async_live_peak_bytes)) {
        spw_pool_count_peak(pool, counters);
    }
}

static inline void spw_pool_count_live(struct spw_pool *pool, int64_t change, bool ordered,
                                       uint32_t site)
{
    spw_pool_count_live_in(pool->figures.counters, pool, change, ordered, site);
}
