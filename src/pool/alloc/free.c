/* Frees blocks, and keeps the order of freed memory when streams and contexts end. */
#include "common/likely.h"
#include "pool/alloc/lazy.h"
#include "pool/alloc/placement.h"
#include "pool/alloc/state.h"
#include "pool/alloc/usage.h"
#include "pool/space/exported.h"

enum { PRESSURE_FENCE_BYTES = 64 << 20 }; /* bytes freed between two fences while memory is short */

/* Records fences early while memory is short, so that some are complete at the next steal. */
static void watch_free(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    queues->pressure--;
    if (queue->unfenced_bytes >= PRESSURE_FENCE_BYTES) {
        (void)spw_pool_stream_queue_fence(queues, queue);
    }
}

/* Frees a block in the order of a queue. The block was already removed from the address map, and
 * the caller has raised the queue's `seq`. */
static void release_block(struct spw_pool *pool, struct spw_extent *block,
                          struct spw_stream_queue *queue)
{
    uint64_t held = spw_pool_extent_held(block);

    spw_counter_shift(&pool->figures.counters->frees, 1);
    if (SPW_UNLIKELY(block->lazy && block->uncounted)) {
        spw_pool_lazy_free(pool, block);
        return;
    }
    if (SPW_UNLIKELY(pool->layout.records != NULL) && block->heap == SPW_HEAP_LARGE) {
        spw_pool_layout_record_free(&pool->layout, block);
    }
    pool->figures.own_live_bytes -= held;
    spw_pool_count_live(pool, -(int64_t)held, block->ordered, block->site);
    if ((block->account | block->placed | block->lazy) != 0) {
        spw_pool_placement_end(&pool->figures, block);
        if (block->lazy) {
            spw_pool_lazy_free(pool, block);
            return;
        }
    }
    if (SPW_UNLIKELY(block->heap == SPW_HEAP_SLAB)) {
        spw_pool_slabs_free(&pool->slabs, block, queue);
    } else {
        spw_pool_space_free(&pool->space, block, queue);
    }
}

/* Returns true if a freed block may be the last one on an exported chunk. A cold function, because
 * it is rarely called. */
static __attribute__((noinline, cold)) bool is_exported(const struct spw_backing *backing,
                                                        const struct spw_extent *block)
{
    return block->heap != SPW_HEAP_SLAB &&
           spw_pool_backing_is_broken(backing, block->address, spw_pool_extent_end(block));
}

enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address, const struct spw_stream *stream)
{
    struct spw_extent *block;
    struct spw_stream_queue *queue;
    bool exported;

    spw_lock(&pool->lock);
    block = pool->shut ? NULL : spw_pool_address_map_take(&pool->blocks, address);
    if (block == NULL) {
        spw_unlock(&pool->lock);
        return SPW_E_NOT_OURS;
    }
    queue = stream != NULL ? spw_pool_stream_queue_of(&pool->queues, stream) : NULL;
    if (queue == NULL) {
        queue = spw_pool_stream_queue_all(&pool->queues);
    }
    pool->queues.clock++;
    spw_pool_stream_queue_stamp(&pool->queues, queue);
    queue->unfenced_bytes += block->bytes;
    exported = SPW_UNLIKELY(pool->exported.count > 0) && is_exported(&pool->backing, block);
    release_block(pool, block, queue);
    if (SPW_UNLIKELY(exported)) {
        pool->exported.ending = true;
        spw_pool_exported_release(&pool->exported);
    }
    if (pool->queues.pressure > 0) {
        watch_free(&pool->queues, queue);
    }
    spw_unlock(&pool->lock);
    return SPW_OK;
}

/* ---- streams and contexts ---- */

uint64_t spw_pool_clock(struct spw_pool *pool)
{
    uint64_t clock;

    spw_lock(&pool->lock);
    clock = pool->queues.clock;
    spw_unlock(&pool->lock);
    return clock;
}

static void synchronized(struct spw_space *space, struct spw_stream_queue *queue, uint64_t clock)
{
    if (spw_pool_stream_queue_synchronized(space->queues, queue, clock)) {
        spw_pool_space_release_completed(space, queue);
    }
}

/* Applies a wait to the queues of a context's streams. If `context` is NULL, applies it to all
 * queues. */
static void synchronized_all(struct spw_space *space, const void *context, uint64_t clock)
{
    struct spw_stream_queue *next;

    for (struct spw_stream_queue *queue =
             spw_pool_stream_queue_first(space->queues, SPW_QUEUES_BUSY);
         queue != NULL; queue = next) {
        next = spw_pool_stream_queue_next(space->queues, queue, SPW_QUEUES_BUSY);
        if (context == NULL ||
            (queue->number >= SPW_STREAM_QUEUE_FIRST_STREAM && queue->stream.context == context)) {
            synchronized(space, queue, clock);
        }
    }
}

void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock)
{
    struct spw_stream_queue *queue;

    spw_lock(&pool->lock);
    if (stream != NULL) {
        queue = spw_pool_stream_queue_known(&pool->queues, stream->id);
        if (queue != NULL) {
            synchronized(&pool->space, queue, clock);
        }
    } else {
        synchronized_all(&pool->space, /* context */ NULL, clock);
    }
    spw_pool_exported_release(&pool->exported);
    spw_unlock(&pool->lock);
}

void spw_pool_context_synchronized(struct spw_pool *pool, const void *context, uint64_t clock)
{
    spw_lock(&pool->lock);
    synchronized_all(&pool->space, context, clock);
    spw_pool_exported_release(&pool->exported);
    spw_unlock(&pool->lock);
}

/* Frees the blocks of a context in a list. A free may merge a block with its neighbours. The
 * block's record stays in the list, so the iteration can continue. */
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
    spw_lock(&pool->lock);
    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < pool->queues.count; i++) {
        struct spw_stream_queue *queue = pool->queues.by_number[i];

        if (queue->stream.context == context && !queue->vacant) {
            synchronized(&pool->space, queue, pool->queues.clock);
            spw_pool_stream_queue_retire(&pool->queues, queue);
            spw_pool_space_release_completed(&pool->space, queue);
        }
    }
    for (size_t i = 0; i < spw_pool_list_count(pool); i++) {
        free_blocks_of(pool, spw_pool_list(pool, i), context);
    }
    spw_pool_slabs_end_context(&pool->slabs, context, /* release */ true);
    pool->exported.ending = !pool->shut && pool->exported.count > 0;
    spw_pool_exported_release(&pool->exported);
    spw_unlock(&pool->lock);
}

void spw_pool_forget_context(struct spw_pool *pool, const void *context)
{
    spw_lock(&pool->lock);
    spw_pool_slabs_end_context(&pool->slabs, context, /* release */ false);
    spw_unlock(&pool->lock);
}

void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream)
{
    struct spw_stream_queue *queue;

    spw_lock(&pool->lock);
    queue = spw_pool_stream_queue_known(&pool->queues, stream->id);
    if (queue != NULL) {
        (void)spw_pool_stream_queue_fence(&pool->queues, queue);
        spw_pool_stream_queue_retire(&pool->queues, queue);
        spw_pool_space_release_completed(&pool->space, queue);
    }
    spw_unlock(&pool->lock);
}
