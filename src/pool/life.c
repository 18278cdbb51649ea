/* The beginning and the end of a pool. */
#include <stdlib.h>

#include "pool/state.h"

enum spw_err spw_pool_create(const struct spw_pool_config *config, const struct spw_vm_ops *ops,
                             void *vm, struct spw_counters *counters, struct spw_pool **ret_pool)
{
    struct spw_pool *pool = calloc(1, sizeof(*pool));
    enum spw_err err;

    if (pool == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    pool->config = *config;
    pool->ops = ops;
    pool->vm = vm;
    pool->counters = counters;
    err = spw_pool_stream_queues_init(&pool->lanes, ops, vm);
    if (err != SPW_OK) {
        goto err_pool;
    }
    err = spw_pool_backing_init(&pool->backing, ops, vm, &pool->lanes, counters,
                                config->arena_bytes, config->granule_bytes);
    if (err != SPW_OK) {
        goto err_lanes;
    }
    spw_pool_space_init(&pool->space, &pool->lanes, &pool->backing, config->host_heap,
                        config->regions);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->waited, NULL);
    spw_counter_set(&counters->limit_bytes, config->limit_bytes);
    *ret_pool = pool;
    return SPW_OK;

err_lanes:
    spw_pool_stream_queues_fini(&pool->lanes, false);
err_pool:
    free(pool);
    return err;
}

/* What is live still goes with the pool. */
static void uncharge_all(struct spw_pool *pool)
{
    for (size_t i = 0; i < spw_pool_list_count(pool); i++) {
        for (const struct spw_extent *e = spw_pool_list(pool, i); e != NULL; e = e->next) {
            if (e->kind == SPW_EXTENT_BLOCK && pool->config.charges != NULL) {
                spw_pool_charges_move(pool->config.charges, e->site,
                                      -(int64_t)spw_pool_extent_held(e));
            }
            if (e->kind == SPW_EXTENT_BLOCK && e->rule != 0) {
                spw_pool_placement_end(pool, e);
            }
        }
    }
}

static void pool_free(struct spw_pool *pool, bool release)
{
    uncharge_all(pool);
    spw_pool_lazy_abandon(pool);
    if (release) {
        spw_pool_move_drop(pool);
    }
    spw_pool_slabs_fini(pool, release);
    spw_pool_stream_queues_fini(&pool->lanes, release);
    spw_pool_backing_fini(&pool->backing, release);
    /* The counters outlive the pool and may serve another. */
    spw_counter_shift(&pool->counters->live_bytes, -(int64_t)pool->own_live_bytes);
    spw_counter_set(&pool->counters->async_live_bytes, 0);
    spw_pool_space_fini(&pool->space);
    spw_pool_address_map_fini(&pool->blocks);
    free(pool);
}

void spw_pool_destroy(struct spw_pool *pool)
{
    if (pool != NULL) {
        pthread_mutex_destroy(&pool->lock);
        pthread_cond_destroy(&pool->waited);
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
    pthread_mutex_lock(&pool->lock);
}

void spw_pool_unlock(struct spw_pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}
