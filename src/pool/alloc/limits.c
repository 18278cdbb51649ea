/* Limits, trimming, and charges of memory that the program creates itself. */
#include "pool/alloc/state.h"
#include "pool/alloc/usage.h"
#include "pool/memory/stock.h"
#include "pool/space/exported.h"
#include "pool/space/pending.h"

/* A fence recorded on an idle stream is complete at the second poll. */
enum { TRIM_LOOKS = 3 };

/* Makes chunks spare and releases up to `count` granules of them. */
static size_t give_back(struct spw_space *space, size_t count)
{
    for (int look = 0; look < TRIM_LOOKS && spw_pool_backing_spare(space->backing) < count;
         look++) {
        spw_pool_poll_queues(space, NULL, true);
        spw_pool_space_evict_free_host(space);
        (void)spw_pool_space_steal(space, count - spw_pool_backing_spare(space->backing));
    }
    return spw_pool_stock_release(&space->backing->stock, SPW_TIER_DEVICE, count);
}

uint64_t spw_pool_trim(struct spw_pool *pool, uint64_t keep_bytes)
{
    uint64_t committed, released = 0;

    spw_lock(&pool->lock);
    spw_pool_exported_release(&pool->exported);
    committed = spw_pool_stock_committed(&pool->backing.stock);
    if (committed > keep_bytes && !pool->shut) {
        released = give_back(&pool->space,
                             (size_t)((committed - keep_bytes) / pool->backing.granule_bytes));
    }
    spw_unlock(&pool->lock);
    return released * pool->backing.granule_bytes;
}

uint64_t spw_pool_trim_pending(struct spw_pool *pool)
{
    size_t released = 0;

    spw_lock(&pool->lock);
    while (!pool->shut && released == 0 &&
           spw_pool_wait_for_fence(&pool->space, &pool->lock, /* briefly */ true) == SPW_OK) {
        released = give_back(&pool->space, spw_pool_stock_committed(&pool->backing.stock) /
                                               pool->backing.granule_bytes);
    }
    spw_unlock(&pool->lock);
    return released * pool->backing.granule_bytes;
}

void spw_pool_fence_frees(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    spw_pool_poll_queues(&pool->space, NULL, /* record */ true);
    spw_unlock(&pool->lock);
}

/* Counts device memory outside of the pool, even if the pool is shut. */
static void count_device(struct spw_pool *pool, int64_t bytes, uint32_t site)
{
    struct spw_counters *counters = pool->figures.device_counters;

    spw_counter_shift(&counters->vmm_bytes, bytes);
    spw_counter_shift(&counters->committed_bytes, bytes);
    spw_counter_peak(&counters->committed_peak_bytes, &counters->committed_bytes);
    spw_pool_count_live_in(counters, pool, bytes, false, site);
}

static void count_host(struct spw_pool *pool, int64_t bytes, uint32_t site)
{
    struct spw_counters *counters = pool->figures.device_counters;

    spw_counter_shift(&counters->vmm_host_bytes, bytes);
    spw_counter_shift(&counters->host_bytes, bytes);
    spw_counter_shift(&counters->host_used_bytes, bytes);
    spw_counter_peak(&counters->host_peak_bytes, &counters->host_bytes);
    spw_pool_count_live_in(counters, pool, bytes, false, site);
}

enum spw_err spw_pool_charge(struct spw_pool *pool, uint64_t bytes, uint32_t site, bool beyond)
{
    struct spw_counters *counters = pool->figures.device_counters;
    uint64_t limit, wanted;
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    limit = spw_pool_stock_limit(&pool->backing.stock, SPW_TIER_DEVICE);
    wanted = spw_counter_get(&counters->committed_bytes) + bytes;
    if (bytes <= limit && wanted > limit) {
        uint64_t excess = wanted - limit;

        (void)give_back(&pool->space, (size_t)((excess + pool->backing.granule_bytes - 1) /
                                               pool->backing.granule_bytes));
        wanted = spw_counter_get(&counters->committed_bytes) + bytes;
        limit = spw_pool_stock_limit(&pool->backing.stock, SPW_TIER_DEVICE);
    }
    if (!beyond && (bytes > limit || wanted > limit)) {
        err = SPW_E_LIMIT;
    } else {
        count_device(pool, (int64_t)bytes, site);
    }
    spw_unlock(&pool->lock);
    return err;
}

void spw_pool_discharge(struct spw_pool *pool, uint64_t bytes, uint32_t site)
{
    spw_lock(&pool->lock);
    count_device(pool, -(int64_t)bytes, site);
    spw_unlock(&pool->lock);
}

enum spw_err spw_pool_charge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site,
                                  bool requested)
{
    enum spw_err err = SPW_E_LIMIT;
    uint64_t limit;

    spw_lock(&pool->lock);
    limit = pool->backing.stock.limits[SPW_TIER_HOST];
    if (bytes <= limit &&
        spw_counter_get(&pool->figures.device_counters->host_bytes) + bytes <= limit) {
        count_host(pool, (int64_t)bytes, site);
        if (!requested) {
            spw_counter_add(&pool->figures.device_counters->spilled_bytes, bytes);
            spw_counter_add(&pool->figures.device_counters->placed_bytes, bytes);
        }
        err = SPW_OK;
    }
    spw_unlock(&pool->lock);
    return err;
}

void spw_pool_discharge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site)
{
    spw_lock(&pool->lock);
    count_host(pool, -(int64_t)bytes, site);
    spw_unlock(&pool->lock);
}

void spw_pool_set_limit(struct spw_pool *pool, uint64_t limit_bytes)
{
    spw_lock(&pool->lock);
    pool->backing.stock.limits[SPW_TIER_DEVICE] = limit_bytes;
    spw_counter_set(&pool->figures.counters->limit_bytes, limit_bytes);
    spw_unlock(&pool->lock);
}

static void set_host_limit(struct spw_stock *stock, uint64_t host_limit_bytes)
{
    stock->limits[SPW_TIER_HOST] = host_limit_bytes;
    spw_counter_set(&stock->counters->host_limit_bytes, host_limit_bytes);
}

void spw_pool_set_host_limit(struct spw_pool *pool, uint64_t host_limit_bytes)
{
    spw_lock(&pool->lock);
    set_host_limit(&pool->backing.stock, host_limit_bytes);
    spw_unlock(&pool->lock);
}

void spw_pool_map_ahead(struct spw_pool *pool, size_t granules)
{
    spw_lock(&pool->lock);
    pool->space.ahead = granules;
    spw_unlock(&pool->lock);
}

enum spw_err spw_pool_open_host(struct spw_pool *pool, uint64_t host_limit_bytes, bool *ret_moves)
{
    enum spw_err err;

    pool->backing.vm->ops->seek_host(pool->backing.vm);
    spw_lock(&pool->lock);
    err = pool->backing.vm->ops->probe_host(pool->backing.vm, ret_moves);
    pool->host_untried = false;
    set_host_limit(&pool->backing.stock, host_limit_bytes);
    if (err != SPW_OK && err != SPW_E_AGAIN) {
        *ret_moves = false;
        err = spw_pool_slabs_open(&pool->slabs) == SPW_OK ? SPW_OK : err;
    }
    if (err != SPW_OK) {
        set_host_limit(&pool->backing.stock, 0);
    }
    spw_unlock(&pool->lock);
    return err;
}

bool spw_pool_uses_pinned(struct spw_pool *pool)
{
    bool pins;

    spw_lock(&pool->lock);
    pins = pool->slabs.open;
    spw_unlock(&pool->lock);
    return pins;
}

uint64_t spw_pool_trim_host(struct spw_pool *pool)
{
    uint64_t released;

    spw_lock(&pool->lock);
    for (int look = 0; look < TRIM_LOOKS; look++) {
        spw_pool_poll_queues(&pool->space, NULL, true);
        spw_pool_space_evict_free_host(&pool->space);
        spw_pool_space_evict_host_heap(&pool->space);
    }
    released = spw_pool_stock_release(&pool->backing.stock, SPW_TIER_HOST, SIZE_MAX) *
               pool->backing.granule_bytes;
    released += spw_pool_slabs_trim(&pool->slabs);
    spw_unlock(&pool->lock);
    return released;
}
