#include "pool/pool.h"

#include <stdlib.h>

#include "pool/alloc/lazy.h"
#include "pool/alloc/placement.h"
#include "pool/alloc/state.h"
#include "pool/memory/moves.h"
#include "pool/space/lost.h"

/* Sets how much memory may be created. */
static void set_limits(struct spw_stock *stock, const struct spw_pool_config *config)
{
    stock->limits[SPW_TIER_DEVICE] = config->limit_bytes;
    stock->limits[SPW_TIER_HOST] = config->host_limit_bytes;
    stock->bounded = config->bounded;
    stock->growth_permille = config->growth_permille;
    if (config->chunk_bytes > config->granule_bytes) {
        stock->largest_order =
            spw_pool_stock_order((size_t)(config->chunk_bytes / config->granule_bytes));
    }
    spw_counter_set(&stock->counters->limit_bytes, config->limit_bytes);
    spw_counter_set(&stock->counters->host_limit_bytes, config->host_limit_bytes);
}

enum spw_err spw_pool_create(const struct spw_pool_config *config, struct spw_vm *vm,
                             struct spw_counters *counters, struct spw_pool **ret_pool)
{
    struct spw_pool *pool = calloc(1, sizeof(*pool));
    /* The arena is at least four times the memory of device and host. */
    uint64_t alias_bytes =
        (config->arena_bytes / config->granule_bytes / 4 + 1) * config->granule_bytes;
    enum spw_err err;

    if (pool == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    pool->figures.counters = pool->figures.device_counters = counters;
    pool->figures.charges = config->charges;
    pool->figures.accounts = config->accounts;
    pool->host_untried = config->host_untried;
    err = spw_pool_stream_queues_init(&pool->queues, vm);
    if (err != SPW_OK) {
        goto err_pool;
    }
    pool->queues.clock = config->clock;
    err = spw_pool_backing_init(
        &pool->backing, &(struct spw_backing_config){.vm = vm,
                                                     .queues = &pool->queues,
                                                     .counters = counters,
                                                     .host_chunks = config->host_chunks,
                                                     .arena_bytes = config->arena_bytes,
                                                     .alias_bytes = alias_bytes,
                                                     .granule_bytes = config->granule_bytes});
    if (err != SPW_OK) {
        goto err_queues;
    }
    spw_pool_space_init(&pool->space, &pool->queues, &pool->backing, config->host_heap,
                        config->numbered_heaps);
    spw_lock_init(&pool->lock, SPW_LOCK_RANK_pool);
    pthread_cond_init(&pool->queues.waited, NULL);
    pool->backing.moves = &pool->moves;
    pool->backing.to_commit = config->to_commit;
    pool->slabs.space = &pool->space;
    pool->layout.space = &pool->space;
    pool->exported.space = &pool->space;
    set_limits(&pool->backing.stock, config);
    *ret_pool = pool;
    return SPW_OK;

err_queues:
    spw_pool_stream_queues_fini(&pool->queues, false);
err_pool:
    free(pool);
    return err;
}

/* Removes the live blocks from the accounts, which outlive the pool. */
static void uncharge_all(struct spw_pool *pool)
{
    for (size_t i = 0; i < spw_pool_list_count(pool); i++) {
        for (const struct spw_extent *e = spw_pool_list(pool, i); e != NULL; e = e->next) {
            if (e->kind == SPW_EXTENT_BLOCK && pool->figures.charges != NULL) {
                spw_pool_charges_move(pool->figures.charges, e->site,
                                      -(int64_t)spw_pool_extent_held(e));
            }
            if (e->kind == SPW_EXTENT_BLOCK && e->account != 0) {
                spw_pool_placement_end(&pool->figures, e);
            }
        }
    }
}

/* Removes the live blocks from the counters. */
static void uncount_blocks(const struct spw_pool *pool, struct spw_counters *counters)
{
    int64_t ordered = 0, count = 0;

    for (size_t i = 0; i < spw_pool_list_count(pool); i++) {
        for (const struct spw_extent *e = spw_pool_list(pool, i); e != NULL; e = e->next) {
            count += e->kind == SPW_EXTENT_BLOCK;
            if (e->kind == SPW_EXTENT_BLOCK && e->ordered) {
                ordered += (int64_t)spw_pool_extent_held(e);
            }
        }
    }
    spw_counter_shift(&counters->frees, count);
    spw_counter_shift(&counters->live_bytes, -(int64_t)pool->figures.own_live_bytes);
    spw_counter_shift(&counters->async_live_bytes, -ordered);
}

/* Subtracts the pool's figures from the device's counters. The pool then counts in its own
 * counters. These begin with the device's values, so that the limits still apply. */
static void leave_counters(struct spw_pool *pool)
{
    struct spw_counters *counters = pool->figures.device_counters;
    struct spw_backing *backing = &pool->backing;

#define SPW_COUNTER(name, kind, help)                                                              \
    spw_counter_set(&pool->figures.own_counters.name, spw_counter_get(&counters->name));
#include "common/counters.def"
#undef SPW_COUNTER
    uncount_blocks(pool, counters);
    spw_pool_backing_uncount(backing, counters);
    spw_counter_shift(&counters->host_bytes, -(int64_t)pool->slabs.bytes);
    spw_counter_shift(&counters->host_used_bytes, -(int64_t)pool->slabs.live_bytes);
    pool->figures.counters = backing->counters = backing->stock.counters =
        &pool->figures.own_counters;
}

static void pool_free(struct spw_pool *pool, bool release)
{
    uncharge_all(pool);
    uncount_blocks(pool, pool->figures.counters);
    spw_pool_lazy_abandon(pool);
    spw_pool_layout_fini(&pool->layout);
    spw_pool_lost_abandon(&pool->backing);
    if (release) {
        spw_pool_move_drop_all(&pool->backing);
        spw_pool_export_drop(&pool->exported);
    }
    spw_pool_slabs_fini(&pool->slabs, release);
    spw_pool_stream_queues_fini(&pool->queues, release);
    spw_pool_backing_fini(&pool->backing, release);
    spw_pool_space_fini(&pool->space);
    spw_pool_address_map_fini(&pool->blocks);
    free(pool->exported.granules);
    free(pool);
}

void spw_pool_shut(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    if (!pool->shut) {
        pool->shut = true;
        pool->exported.ending = false;
        leave_counters(pool);
    }
    spw_unlock(&pool->lock);
}

void spw_pool_destroy(struct spw_pool *pool)
{
    if (pool != NULL) {
        spw_lock_fini(&pool->lock);
        pthread_cond_destroy(&pool->queues.waited);
        pool_free(pool, true);
    }
}

void spw_pool_abandon(struct spw_pool *pool)
{
    if (pool != NULL) {
        pool_free(pool, false);
    }
}

void spw_pool_lock(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
}

void spw_pool_unlock(struct spw_pool *pool)
{
    spw_unlock(&pool->lock);
}
