/* Checks all invariants. */
#include "pool/alloc/state.h"

/* Sums over all extents, which are compared with the pool's own figures. */
struct totals {
    uint64_t block_bytes, block_count, lazy_count, uncounted_count, placed_bytes;
    uint64_t free_count, indexed_count;
    uint64_t host_count, unbinned_count;
};

static const char *check_backed(const struct spw_backing *backing, const struct spw_extent *extent,
                                bool backed)
{
    for (uint64_t at = extent->address; at < spw_pool_extent_end(extent);
         at = spw_pool_backing_down(backing, at) + backing->granule_bytes) {
        if (spw_pool_backing_has(backing, at) != backed) {
            return backed ? "a block or free extent lies on a granule that is not backed"
                          : "a hole lies on a granule that is backed";
        }
    }
    return NULL;
}

static const char *check_free(const struct spw_backing *backing, const struct spw_extent *extent,
                              struct totals *totals)
{
    uint64_t end = spw_pool_extent_end(extent);
    bool host =
        extent->heap != SPW_HEAP_HOST && spw_pool_backing_on_host(backing, extent->address, end);

    totals->free_count++;
    totals->host_count += extent->host;
    if (extent->queue->number != SPW_STREAM_QUEUE_IDLE && extent->seq > extent->queue->seq) {
        return "a free extent waits for a free that has not happened";
    }
    if (extent->host != host) {
        return "a free extent does not know whether it is on the host";
    }
    if (spw_pool_backing_is_broken(backing, extent->address, end)) {
        return "a free extent lies on a granule that is broken";
    }
    return check_backed(backing, extent, true);
}

static const char *check_extent(const struct spw_pool *pool, const struct spw_extent *extent,
                                struct totals *totals)
{
    uint64_t granule = pool->backing.granule_bytes;

    if (extent->bytes == 0 || extent->bytes % SPW_UNIT_BYTES != 0) {
        return "an extent has no size, or one that is no multiple of the unit";
    }
    switch ((enum spw_extent_kind)extent->kind) {
    case SPW_EXTENT_BLOCK:
        totals->block_bytes += spw_pool_extent_held(extent);
        totals->lazy_count += extent->lazy;
        totals->uncounted_count += extent->lazy && extent->uncounted;
        totals->placed_bytes += (uint64_t)extent->placed * SPW_UNIT_BYTES;
        totals->block_count++;
        if (spw_pool_address_map_get(&pool->blocks, extent->address) != extent) {
            return "a block is not found under its address";
        }
        /* An attempt to back a lazy block may have failed halfway. */
        return extent->lazy ? NULL : check_backed(&pool->backing, extent, true);
    case SPW_EXTENT_FREE:
        return check_free(&pool->backing, extent, totals);
    case SPW_EXTENT_HOLE:
        totals->free_count++;
        if (extent->address % granule != 0 || extent->bytes % granule != 0) {
            return "a hole is not made of whole granules";
        }
        return check_backed(&pool->backing, extent, false);
    case SPW_EXTENT_CLAIM:
        return spw_pool_backing_is_broken(&pool->backing, extent->address,
                                          spw_pool_extent_end(extent))
                   ? NULL
                   : "a claim outlived its allocation";
    }
    return "an extent is of no known kind";
}

/* Returns true if two neighbouring extents should be one. Otherwise a granule that they share could
 * not be stolen or evicted. */
static bool should_merge(const struct spw_extent *a, const struct spw_extent *b)
{
    if (b == NULL || b->kind != a->kind) {
        return false;
    }
    return a->kind == SPW_EXTENT_HOLE ||
           (a->kind == SPW_EXTENT_FREE && a->host == b->host && a->queue == b->queue &&
            a->queue->number == SPW_STREAM_QUEUE_IDLE);
}

static const char *check_heap(const struct spw_pool *pool, const struct spw_heap *heap,
                              struct totals *totals)
{
    uint64_t expected = heap->base;

    for (const struct spw_extent *e = heap->first; e != NULL; e = e->next) {
        const char *broken = check_extent(pool, e, totals);

        if (broken != NULL) {
            return broken;
        }
        if (e->address != expected || &pool->space.heaps[e->heap] != heap ||
            (e->next != NULL ? e->next->prev != e : heap->last != e)) {
            return "the extents of a heap do not tile it";
        }
        if (should_merge(e, e->next)) {
            return "two idle neighbours are not one extent";
        }
        expected = spw_pool_extent_end(e);
    }
    for (const struct spw_extent *e = heap->holes.oldest; e != NULL; e = e->age.next) {
        totals->indexed_count++;
    }
    return expected == heap->frontier ? NULL : "the last extent does not reach the frontier";
}

static const char *check_queue(const struct spw_stream_queue *queue, struct totals *totals)
{
    uint64_t in_bins = 0, in_list = 0;

    for (const struct spw_extent *e = queue->extents.oldest; e != NULL; e = e->age.next) {
        if (e->kind != SPW_EXTENT_FREE || e->queue != queue) {
            return "a queue's list holds an extent that is not its own";
        }
        in_list++;
        totals->unbinned_count += e->host;
        in_bins += e->host;
    }
    for (int heap = 0; heap < SPW_HEAP_COUNT; heap++) {
        in_bins += spw_pool_shelf_count(&queue->shelves[heap]);
    }
    totals->indexed_count += in_list;
    if (queue->done > queue->seq || queue->fenced > queue->seq) {
        return "a queue has completed frees that have not happened";
    }
    if (in_list > 0 && queue->number != SPW_STREAM_QUEUE_IDLE &&
        (queue->listed & 1u << SPW_QUEUES_BUSY) == 0) {
        return "a queue with extents is not among the busy ones";
    }
    if (((queue->listed & 1u << SPW_QUEUES_FENCED) != 0) != (queue->count > 0)) {
        return "a queue with fences is not listed, or one without is";
    }
    return in_bins == in_list ? NULL : "a queue's bins and its list hold different extents";
}

/* Returns true if a granule is a consistent part of its chunk. */
static bool is_part_of_chunk(const struct spw_backing *backing, size_t index)
{
    const struct spw_granule *granule = &backing->granules[index], *first = granule - granule->part;

    return granule->part < spw_pool_stock_size(granule->order) && first->part == 0 &&
           first->chunk == granule->chunk && first->order == granule->order &&
           first->tier == granule->tier && first->away == granule->away;
}

static size_t count_spare(const struct spw_stock_tier *store)
{
    size_t granules = 0;

    for (unsigned order = 0; order < SPW_CHUNK_ORDERS; order++) {
        granules += store->orders[order].count << order;
    }
    return granules;
}

/* Counts the granules of each tier, and those that are away. Returns false if a chunk backs only a
 * part of its granules. */
static bool count_backed(const struct spw_space *space, size_t *ret_mapped, size_t *ret_away)
{
    const struct spw_backing *backing = space->backing;
    bool whole = true;

    for (int i = 0; i < SPW_HEAP_COUNT; i++) {
        const struct spw_heap *heap = &space->heaps[i];

        for (size_t g = spw_pool_backing_index(backing, heap->base);
             g < spw_pool_backing_index(backing, heap->frontier); g++) {
            ret_mapped[backing->granules[g].tier] +=
                backing->granules[g].chunk != 0 && !backing->granules[g].swapped;
            *ret_away += backing->granules[g].away;
            whole = whole && is_part_of_chunk(backing, g);
        }
    }
    return whole;
}

static const char *check_chunks(const struct spw_pool *pool)
{
    const struct spw_counters *counters = pool->figures.counters;
    const struct spw_stock_tier *device = &pool->backing.stock.tiers[SPW_TIER_DEVICE];
    const struct spw_stock_tier *host = &pool->backing.stock.tiers[SPW_TIER_HOST];
    uint64_t granule = pool->backing.granule_bytes;
    uint64_t charged = spw_counter_get(&counters->vmm_host_bytes);
    size_t mapped[SPW_TIER_COUNT] = {0}, away = 0;

    if (!count_backed(&pool->space, mapped, &away)) {
        return "a chunk is mapped in part";
    }
    if (away != pool->backing.away) {
        return "chunks that are away are miscounted";
    }
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        const struct spw_stock_tier *store = &pool->backing.stock.tiers[tier];

        if (mapped[tier] + store->spare + store->held != store->total) {
            return "chunks are neither mapped nor spare";
        }
        if (count_spare(store) != store->spare) {
            return "spare chunks are miscounted";
        }
    }
    if (spw_counter_get(&counters->committed_bytes) - spw_counter_get(&counters->vmm_bytes) !=
        device->total * granule) {
        return "committed_bytes is not what the chunks add up to";
    }
    if (spw_counter_get(&counters->host_bytes) - charged !=
            host->total * granule + pool->slabs.bytes ||
        spw_counter_get(&counters->host_used_bytes) - charged !=
            mapped[SPW_TIER_HOST] * granule + pool->slabs.live_bytes) {
        return "host_bytes is not what chunks and slabs add up to";
    }
    return NULL;
}

static const char *check_census(const struct spw_pool *pool, const struct totals *totals)
{
    const struct spw_counters *counters = pool->figures.counters;
    uint64_t charged =
        spw_counter_get(&counters->vmm_bytes) + spw_counter_get(&counters->vmm_host_bytes);

    if (totals->block_bytes != pool->figures.own_live_bytes ||
        spw_counter_get(&counters->live_bytes) - charged != pool->figures.own_live_bytes) {
        return "live_bytes is not what the blocks add up to";
    }
    if (totals->host_count != pool->space.host_extents ||
        totals->unbinned_count != pool->space.host_extents) {
        return "free extents on the host are miscounted";
    }
    if (totals->lazy_count != pool->figures.lazy_count ||
        (totals->uncounted_count == 0) != (pool->figures.uncounted_bytes == 0)) {
        return "lazy blocks are miscounted";
    }
    if (pool->backing.lost_announced !=
        (pool->backing.lost > 0 && pool->backing.to_commit != NULL)) {
        return "lost granules are not announced, or announced without reason";
    }
    if (!pool->slabs.open && totals->placed_bytes != pool->figures.placed_bytes) {
        return "bytes placed on the host are miscounted";
    }
    if (totals->block_count != pool->blocks.count) {
        return "there are addresses without a block";
    }
    return totals->free_count == totals->indexed_count
               ? NULL
               : "a free extent or hole is missing from its index";
}

static const char *check_locked(const struct spw_pool *pool)
{
    struct totals totals = {0};
    const char *broken = NULL;

    for (int i = 0; i < SPW_HEAP_COUNT && broken == NULL; i++) {
        broken = check_heap(pool, &pool->space.heaps[i], &totals);
    }
    for (uint32_t i = 0; i < pool->queues.count && broken == NULL; i++) {
        broken = check_queue(pool->queues.by_number[i], &totals);
    }
    if (broken == NULL) {
        broken = spw_pool_slabs_check(&pool->slabs, &pool->blocks, &totals.block_bytes,
                                      &totals.block_count);
    }
    if (broken == NULL) {
        broken = check_chunks(pool);
    }
    return broken != NULL ? broken : check_census(pool, &totals);
}

const char *spw_pool_check(struct spw_pool *pool)
{
    const char *broken;

    spw_lock(&pool->lock);
    broken = check_locked(pool);
    spw_unlock(&pool->lock);
    return broken;
}
