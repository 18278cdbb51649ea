/* What is freed, what is still pending of it, and what streams and contexts leave behind. */
#include "pool/pool.h"

#include "pool/state.h"

enum { PRESSURE_FENCE_BYTES = 64 << 20 }; /* freed between two fences while memory is short */

/* ---- pending memory ---- */

void spw_pool_settle_lane(struct spw_pool *pool, struct spw_stream_queue *lane, bool record)
{
    if (lane->done == lane->seq) {
        return;
    }
    if (record) {
        (void)spw_pool_stream_queue_fence(&pool->lanes, lane);
    }
    if (spw_pool_stream_queue_poll(&pool->lanes, lane)) {
        spw_pool_space_settle(&pool->space, lane);
    }
}

void spw_pool_settle(struct spw_pool *pool, const struct spw_stream_queue *except, bool record)
{
    spw_pool_move_settle(pool);
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->lanes.count; i++) {
        if (pool->lanes.by_number[i] != except) {
            spw_pool_settle_lane(pool, pool->lanes.by_number[i], record);
        }
    }
}

enum spw_err spw_pool_wait_for_one(struct spw_pool *pool)
{
    struct spw_fence_record record;
    struct spw_stream_queue *lane = spw_pool_stream_queue_take_pending(&pool->lanes, &record);
    enum spw_err err;

    if (lane == NULL) {
        if (pool->lanes.waiters == 0) {
            return SPW_E_NO_MEMORY;
        }
        spw_lock_wait(&pool->lock, &pool->waited);
        return SPW_OK;
    }
    pool->lanes.waiters++;
    spw_counter_add(&pool->counters->host_waits, 1);
    spw_unlock(&pool->lock);
    /* With a host tier there is another way than to wait for ever. */
    err = (pool->config.host_limit_bytes > 0 ? pool->ops->wait_soon
                                             : pool->ops->wait_host)(pool->vm, record.fence);
    spw_lock(&pool->lock);
    pool->lanes.waiters--;
    spw_pool_stream_queue_waited(&pool->lanes, lane, record, err == SPW_OK);
    spw_pool_space_settle(&pool->space, lane);
    pthread_cond_broadcast(&pool->waited);
    return err;
}

/* ---- free ---- */

void spw_pool_count_peak(struct spw_pool *pool)
{
    struct spw_counters *counters = pool->counters;

    if (pool->config.charges != NULL &&
        spw_counter_get(&counters->live_bytes) > spw_counter_get(&counters->live_peak_bytes)) {
        spw_pool_charges_peak(pool->config.charges);
    }
    spw_counter_peak(&counters->live_peak_bytes, &counters->live_bytes);
    spw_counter_peak(&counters->async_live_peak_bytes, &counters->async_live_bytes);
}

/* While memory is short, fences are recorded as memory is freed, so that some have completed when
 * the next steal looks for them. */
static void watch_free(struct spw_pool *pool, struct spw_stream_queue *lane)
{
    pool->pressure--;
    if (lane->unfenced_bytes >= PRESSURE_FENCE_BYTES) {
        (void)spw_pool_stream_queue_fence(&pool->lanes, lane);
    }
}

/* Gives back a block that is in no map any more, in the order of a lane that has counted it. */
static void give_block(struct spw_pool *pool, struct spw_extent *block,
                       struct spw_stream_queue *lane)
{
    uint64_t held = spw_pool_extent_held(block);

    pool->own_live_bytes -= held;
    spw_pool_count_live(pool, -(int64_t)held, block->ordered, block->site);
    spw_counter_shift(&pool->counters->frees, 1);
    if (block->rule != 0) {
        spw_pool_placement_end(pool, block);
        if (block->lazy) {
            spw_pool_lazy_free(pool, block);
            return;
        }
    }
    if (__builtin_expect(block->heap == SPW_HEAP_SLAB, 0)) {
        spw_pool_slabs_free(pool, block, lane);
    } else {
        spw_pool_space_free(&pool->space, block, lane);
    }
}

enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address, const struct spw_stream *stream)
{
    struct spw_extent *block;
    struct spw_stream_queue *lane;

    spw_lock(&pool->lock);
    block = spw_pool_address_map_take(&pool->blocks, address);
    if (block == NULL) {
        spw_unlock(&pool->lock);
        return SPW_E_NOT_OURS;
    }
    lane = stream != NULL ? spw_pool_stream_queue_of(&pool->lanes, stream) : NULL;
    if (lane == NULL) {
        lane = spw_pool_stream_queue_all(&pool->lanes);
    }
    lane->seq = ++pool->lanes.clock;
    lane->unfenced_bytes += block->bytes;
    give_block(pool, block, lane);
    if (pool->pressure > 0) {
        watch_free(pool, lane);
    }
    spw_unlock(&pool->lock);
    return SPW_OK;
}

/* ---- streams and contexts ---- */

uint64_t spw_pool_clock(struct spw_pool *pool)
{
    uint64_t clock;

    spw_lock(&pool->lock);
    clock = pool->lanes.clock;
    spw_unlock(&pool->lock);
    return clock;
}

static void synchronized(struct spw_pool *pool, struct spw_stream_queue *lane, uint64_t clock)
{
    if (spw_pool_stream_queue_synchronized(&pool->lanes, lane, clock)) {
        spw_pool_space_settle(&pool->space, lane);
    }
}

void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock)
{
    struct spw_stream_queue *lane;

    spw_lock(&pool->lock);
    if (stream != NULL) {
        lane = spw_pool_stream_queue_known(&pool->lanes, stream->id);
        if (lane != NULL) {
            synchronized(pool, lane, clock);
        }
    } else {
        for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->lanes.count; i++) {
            synchronized(pool, pool->lanes.by_number[i], clock);
        }
    }
    spw_unlock(&pool->lock);
}

/* The extent that was the block may have joined its neighbours; it is still the record to go on
 * from. */
static void free_blocks_of(struct spw_pool *pool, struct spw_extent *first, const void *context)
{
    for (struct spw_extent *e = first; e != NULL; e = e->next) {
        if (e->kind == SPW_EXTENT_BLOCK && !e->ordered && e->context == context) {
            (void)spw_pool_address_map_take(&pool->blocks, e->address);
            give_block(pool, e, spw_pool_stream_queue_idle(&pool->lanes));
        }
    }
}

void spw_pool_lose_context(struct spw_pool *pool, const void *context)
{
    spw_lock(&pool->lock);
    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < pool->lanes.count; i++) {
        struct spw_stream_queue *lane = pool->lanes.by_number[i];

        if (lane->stream.context == context) {
            synchronized(pool, lane, pool->lanes.clock);
        }
    }
    for (size_t i = 0; i < spw_pool_list_count(pool); i++) {
        free_blocks_of(pool, spw_pool_list(pool, i), context);
    }
    spw_unlock(&pool->lock);
}

void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream)
{
    struct spw_stream_queue *lane;

    spw_lock(&pool->lock);
    lane = spw_pool_stream_queue_known(&pool->lanes, stream->id);
    if (lane != NULL) {
        (void)spw_pool_stream_queue_fence(&pool->lanes, lane);
        lane->retired = true;
        spw_pool_space_settle(&pool->space, lane);
    }
    spw_unlock(&pool->lock);
}
