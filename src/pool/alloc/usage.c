#include "pool/alloc/usage.h"

void spw_pool_count_peak(struct spw_pool *pool, struct spw_counters *counters)
{
    if (pool->figures.charges != NULL &&
        spw_counter_get(&counters->live_bytes) > spw_counter_get(&counters->live_peak_bytes)) {
        spw_pool_charges_peak(pool->figures.charges);
    }
    spw_counter_peak(&counters->live_peak_bytes, &counters->live_bytes);
    spw_counter_peak(&counters->async_live_peak_bytes, &counters->async_live_bytes);
}

static uint64_t largest_of(const struct spw_stream_queue *queue, uint64_t largest)
{
    for (int heap = 0; queue->extents.oldest != NULL && heap < SPW_HEAP_COUNT; heap++) {
        uint64_t bytes = heap == SPW_HEAP_HOST ? 0 : spw_pool_shelf_largest(&queue->shelves[heap]);

        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static uint64_t largest_free(struct spw_stream_queues *queues)
{
    const struct spw_stream_queue *queue = spw_pool_stream_queue_first(queues, SPW_QUEUES_BUSY);
    uint64_t largest = largest_of(spw_pool_stream_queue_idle(queues), 0);

    while (queue != NULL) {
        largest = largest_of(queue, largest);
        queue = spw_pool_stream_queue_next(queues, queue, SPW_QUEUES_BUSY);
    }
    return largest;
}

void spw_pool_usage(struct spw_pool *pool, struct spw_pool_usage *ret_usage)
{
    uint64_t host, backed;

    spw_lock(&pool->lock);
    spw_pool_exported_release(&pool->exported);
    host = spw_counter_get(&pool->figures.counters->host_used_bytes);
    backed = spw_pool_stock_committed(&pool->backing.stock) + host -
             spw_counter_get(&pool->figures.counters->vmm_host_bytes);
    *ret_usage = (struct spw_pool_usage){
        .limit = pool->backing.stock.limits[SPW_TIER_DEVICE],
        .live = spw_counter_get(&pool->figures.counters->live_bytes),
        .placed = pool->figures.placed_bytes,
        .lazy = pool->figures.lazy_bytes,
        .uncounted = pool->figures.uncounted_bytes,
        .ordered_live = spw_counter_get(&pool->figures.counters->async_live_bytes),
        .committed = spw_counter_get(&pool->figures.counters->committed_bytes),
        .host = host,
        .host_limit = pool->backing.stock.limits[SPW_TIER_HOST],
        .spare = backed - (pool->figures.own_live_bytes - pool->figures.lazy_bytes),
        .largest_free = largest_free(&pool->queues),
    };
    spw_unlock(&pool->lock);
}

void spw_pool_reset_ordered_peak(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    spw_counter_set(&pool->figures.counters->async_live_peak_bytes,
                    spw_counter_get(&pool->figures.counters->async_live_bytes));
    spw_unlock(&pool->lock);
}

void spw_pool_reset_reserved_peak(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    spw_counter_set(&pool->figures.counters->reserved_peak_bytes,
                    spw_counter_get(&pool->figures.counters->committed_bytes) +
                        spw_counter_get(&pool->figures.counters->host_used_bytes));
    spw_unlock(&pool->lock);
}
