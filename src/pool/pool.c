/* What is freed, what is still pending of it, and what streams and contexts leave behind. */
#include "pool/pool.h"

#include "pool/state.h"

enum { PRESSURE_FENCE_BYTES = 64 << 20 }; /* freed between two fences while memory is short */

/* ---- pending memory ---- */

void spw_pool_poll_queue(struct spw_pool *pool, struct spw_stream_queue *queue, bool record)
{
    if (queue->done == queue->seq) {
        return;
    }
    if (record) {
        (void)spw_pool_stream_queue_fence(&pool->queues, queue);
    }
    if (spw_pool_stream_queue_poll(&pool->queues, queue)) {
        spw_pool_space_release_completed(&pool->space, queue);
    }
}

void spw_pool_poll_queues(struct spw_pool *pool, const struct spw_stream_queue *except, bool record)
{
    spw_pool_staging_end_finished(pool);
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->queues.count; i++) {
        if (pool->queues.by_number[i] != except) {
            spw_pool_poll_queue(pool, pool->queues.by_number[i], record);
        }
    }
}

enum spw_err spw_pool_wait_for_fence(struct spw_pool *pool)
{
    struct spw_fence_record record;
    struct spw_stream_queue *queue = spw_pool_stream_queue_take_pending(&pool->queues, &record);
    enum spw_err err;

    if (queue == NULL) {
        if (pool->queues.waiters == 0) {
            return SPW_E_NO_MEMORY;
        }
        pthread_cond_wait(&pool->waited, &pool->lock);
        return SPW_OK;
    }
    pool->queues.waiters++;
    spw_counter_add(&pool->counters->host_waits, 1);
    pthread_mutex_unlock(&pool->lock);
    /* With a host tier there is another way than to wait for ever. */
    err = (pool->config.host_limit_bytes > 0 ? pool->ops->wait_soon
                                             : pool->ops->wait_host)(pool->vm, record.fence);
    pthread_mutex_lock(&pool->lock);
    pool->queues.waiters--;
    spw_pool_stream_queue_waited(&pool->queues, queue, record, err == SPW_OK);
    spw_pool_space_release_completed(&pool->space, queue);
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
static void watch_free(struct spw_pool *pool, struct spw_stream_queue *queue)
{
    pool->pressure--;
    if (queue->unfenced_bytes >= PRESSURE_FENCE_BYTES) {
        (void)spw_pool_stream_queue_fence(&pool->queues, queue);
    }
}

/* Gives back a block that is in no map any more, in the order of a queue that has counted it. */
static void release_block(struct spw_pool *pool, struct spw_extent *block,
                          struct spw_stream_queue *queue)
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
        spw_pool_slabs_free(pool, block, queue);
    } else {
        spw_pool_space_free(&pool->space, block, queue);
    }
}

enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address, const struct spw_stream *stream)
{
    struct spw_extent *block;
    struct spw_stream_queue *queue;

    pthread_mutex_lock(&pool->lock);
    block = spw_pool_address_map_take(&pool->blocks, address);
    if (block == NULL) {
        pthread_mutex_unlock(&pool->lock);
        return SPW_E_NOT_OURS;
    }
    queue = stream != NULL ? spw_pool_stream_queue_of(&pool->queues, stream) : NULL;
    if (queue == NULL) {
        queue = spw_pool_stream_queue_all(&pool->queues);
    }
    queue->seq = ++pool->queues.clock;
    queue->unfenced_bytes += block->bytes;
    release_block(pool, block, queue);
    if (pool->pressure > 0) {
        watch_free(pool, queue);
    }
    pthread_mutex_unlock(&pool->lock);
    return SPW_OK;
}

/* ---- streams and contexts ---- */

uint64_t spw_pool_clock(struct spw_pool *pool)
{
    uint64_t clock;

    pthread_mutex_lock(&pool->lock);
    clock = pool->queues.clock;
    pthread_mutex_unlock(&pool->lock);
    return clock;
}

static void synchronized(struct spw_pool *pool, struct spw_stream_queue *queue, uint64_t clock)
{
    if (spw_pool_stream_queue_synchronized(&pool->queues, queue, clock)) {
        spw_pool_space_release_completed(&pool->space, queue);
    }
}

void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock)
{
    struct spw_stream_queue *queue;

    pthread_mutex_lock(&pool->lock);
    if (stream != NULL) {
        queue = spw_pool_stream_queue_known(&pool->queues, stream->id);
        if (queue != NULL) {
            synchronized(pool, queue, clock);
        }
    } else {
        for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->queues.count; i++) {
            synchronized(pool, pool->queues.by_number[i], clock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

/* The extent that was the block may have joined its neighbours; it is still the record to go on
 * from. */
static void free_blocks_of(struct spw_pool *pool, struct spw_extent *first, const void *context)
{
    for (struct spw_extent *e = first; e != NULL; e = e->next) {
        if (e->kind == SPW_EXTENT_BLOCK && !e->ordered && e->context == context) {
            (void)spw_pool_address_map_take(&pool->blocks, e->address);
            release_block(pool, e, spw_pool_stream_queue_idle(&pool->queues));
        }
    }
}

void spw_pool_free_context(struct spw_pool *pool, const void *context)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < pool->queues.count; i++) {
        struct spw_stream_queue *queue = pool->queues.by_number[i];

        if (queue->stream.context == context) {
            synchronized(pool, queue, pool->queues.clock);
        }
    }
    for (size_t i = 0; i < spw_pool_list_count(pool); i++) {
        free_blocks_of(pool, spw_pool_list(pool, i), context);
    }
    pthread_mutex_unlock(&pool->lock);
}

void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream)
{
    struct spw_stream_queue *queue;

    pthread_mutex_lock(&pool->lock);
    queue = spw_pool_stream_queue_known(&pool->queues, stream->id);
    if (queue != NULL) {
        (void)spw_pool_stream_queue_fence(&pool->queues, queue);
        queue->retired = true;
        spw_pool_space_release_completed(&pool->space, queue);
    }
    pthread_mutex_unlock(&pool->lock);
}
