#include "pool/pool.h"

#include "pool/state.h"

enum { TRIM_LOOKS = 3 };

void spw_pool_set_limit(struct spw_pool *pool, uint64_t limit_bytes)
{
    pthread_mutex_lock(&pool->lock);
    pool->config.limit_bytes = limit_bytes;
    spw_counter_set(&pool->counters->limit_bytes, limit_bytes);
    pthread_mutex_unlock(&pool->lock);
}

void spw_pool_set_host_limit(struct spw_pool *pool, uint64_t host_limit_bytes)
{
    pthread_mutex_lock(&pool->lock);
    pool->config.host_limit_bytes = host_limit_bytes;
    spw_counter_set(&pool->counters->host_limit_bytes, host_limit_bytes);
    pthread_mutex_unlock(&pool->lock);
}

uint64_t spw_pool_trim_host(struct spw_pool *pool)
{
    size_t released;

    pthread_mutex_lock(&pool->lock);
    /* A fence that was recorded just now has completed at the second look, when nothing runs. */
    for (int look = 0; look < TRIM_LOOKS && pool->space.host_extents > 0; look++) {
        spw_pool_settle(pool, NULL, true);
        spw_space_shed(&pool->space);
    }
    released = spw_backing_release(&pool->backing, SPW_TIER_HOST, SIZE_MAX);
    pthread_mutex_unlock(&pool->lock);
    return released * pool->config.granule_bytes;
}
