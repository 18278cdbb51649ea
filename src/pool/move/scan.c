/* The state of granules, for callers that choose granules to move. */
#include <string.h>

#include "pool/alloc/state.h"
#include "pool/move/movable.h"
#include "pool/space/heaps.h"

/* Enters a block into the information of its granules. */
static void scan_block(const struct spw_backing *backing, const struct spw_extent *block,
                       struct spw_granule_info *infos, size_t first, size_t count)
{
    uint64_t at = spw_pool_backing_down(backing, block->address);

    for (; at < spw_pool_extent_end(block); at += backing->granule_bytes) {
        size_t index = spw_pool_backing_index(backing, at);
        const struct spw_granule *granule = &backing->granules[index];
        struct spw_granule_info *info = &infos[index - first];

        if (index - first >= count) {
            return;
        }
        if (info->block == 0) {
            *info = (struct spw_granule_info){.block = block->address,
                                              .priority = block->priority,
                                              .tier = granule->tier,
                                              .movable = granule->chunk != 0 && !granule->broken &&
                                                         !granule->pinned};
        }
        /* A block that was placed on the host stays on the host. */
        info->movable = info->movable && spw_pool_can_move(backing->moves, block) &&
                        (block->placed == 0 || granule->tier == SPW_TIER_DEVICE);
        if (block->priority > info->priority) {
            info->priority = block->priority;
        }
    }
}

/* Counts device granules under large blocks. `whole`: of the chunks under them. */
static uint64_t count_used(const struct spw_space *space, bool whole)
{
    const struct spw_backing *backing = space->backing;
    uint64_t used = 0;
    size_t at = 0;

    for (const struct spw_extent *e = spw_pool_heaps_first_large(space->heaps); e != NULL;
         e = spw_pool_heaps_next_large(space->heaps, e)) {
        size_t begin = spw_pool_backing_index(backing, e->address);
        size_t last = spw_pool_backing_index(backing, spw_pool_extent_end(e) - 1);

        if (e->kind != SPW_EXTENT_BLOCK) {
            continue;
        }
        begin = whole ? spw_pool_backing_chunk_begin(backing, begin) : begin;
        last = whole ? spw_pool_backing_chunk_end(backing, last) - 1 : last;
        for (at = begin > at ? begin : at; at <= last; at++) {
            used += backing->granules[at].tier == SPW_TIER_DEVICE;
        }
    }
    return used;
}

/* Returns true if an item of a move is not yet committed. */
static bool is_pending(const struct spw_move *move, const struct spw_move_item *item)
{
    return !move->over && !item->left_out && !item->committed;
}

/* Returns how many granules the moves in progress will add to the room. */
static int64_t find_growth(const struct spw_moves *moves)
{
    int64_t growth = 0;

    for (size_t i = 0; i < SPW_MOVES; i++) {
        const struct spw_move *move = &moves->each[i];

        for (size_t k = 0; k < move->count; k++) {
            if (is_pending(move, &move->items[k])) {
                int64_t count = (int64_t)move->items[k].count;

                growth += move->items[k].to == SPW_TIER_HOST ? count : -count;
            }
        }
    }
    return growth;
}

/* Returns how many bytes of the device blocks do not use, in chunks that exist or that may be
 * created. `whole`: in chunks that no block uses. */
static int64_t find_room(const struct spw_space *space, bool whole)
{
    const struct spw_heap *small = &space->heaps[SPW_HEAP_SMALL];
    uint64_t granule = space->backing->granule_bytes;
    uint64_t chunks = spw_pool_stock_committed(&space->backing->stock);
    uint64_t used = spw_pool_backing_up(space->backing, small->frontier) -
                    spw_pool_backing_down(space->backing, small->base) +
                    count_used(space, whole) * granule;

    return (int64_t)(space->backing->stock.limits[SPW_TIER_DEVICE] + chunks -
                     spw_counter_get(&space->backing->counters->committed_bytes)) -
           (int64_t)used + find_growth(space->backing->moves) * (int64_t)granule;
}

int64_t spw_pool_room(struct spw_pool *pool)
{
    int64_t room;

    spw_lock(&pool->lock);
    room = find_room(&pool->space, /* whole */ true);
    spw_unlock(&pool->lock);
    return room;
}

/* Returns the end of the last heap in use. */
static uint64_t find_end(const struct spw_space *space)
{
    uint64_t end = space->heaps[SPW_HEAP_LARGE].frontier;

    for (int i = SPW_HEAP_NUMBERED; i < SPW_HEAP_COUNT; i++) {
        const struct spw_heap *heap = &space->heaps[i];

        end = heap->frontier > heap->base ? heap->frontier : end;
    }
    return spw_pool_backing_up(space->backing, end);
}

/* Merges the information about the other granules of a chunk into its first granule. */
static void scan_chunks(const struct spw_backing *backing, struct spw_granule_info *infos,
                        size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct spw_granule *granule = &backing->granules[first + i];
        struct spw_granule_info *head = &infos[i - granule->part];

        infos[i].part = granule->part;
        infos[i].count = (uint8_t)spw_pool_stock_size(granule->order);
        if (granule->part == 0) {
            continue;
        }
        if (infos[i].block != 0 && head->block == 0) {
            head->block = infos[i].block;
            head->priority = infos[i].priority;
            head->tier = infos[i].tier;
            head->movable = infos[i].movable;
        } else if (infos[i].block != 0) {
            head->movable = head->movable && infos[i].movable;
            head->priority =
                infos[i].priority > head->priority ? infos[i].priority : head->priority;
        }
    }
}

/* Sets the tier of granules that are being moved to their new tier. */
static void scan_move(const struct spw_move *move, struct spw_granule_info *infos, size_t first,
                      size_t count)
{
    for (size_t i = 0; i < move->count; i++) {
        const struct spw_move_item *item = &move->items[i];

        for (size_t k = item->granule; is_pending(move, item) && k < item->granule + item->count;
             k++) {
            if (k - first < count) {
                infos[k - first].tier = (uint8_t)item->to;
            }
        }
    }
}

size_t spw_pool_scan_granules(struct spw_pool *pool, struct spw_granule_info *infos, size_t most,
                              uint64_t *ret_address, int64_t *ret_room)
{
    uint64_t base = pool->space.heaps[SPW_HEAP_LARGE].base;
    size_t count;

    spw_lock(&pool->lock);
    count = (size_t)((find_end(&pool->space) - base) / pool->backing.granule_bytes);
    count = count < most ? count : most;
    memset(infos, 0, count * sizeof(*infos));
    for (const struct spw_extent *e = spw_pool_heaps_first_large(pool->space.heaps); e != NULL;
         e = spw_pool_heaps_next_large(pool->space.heaps, e)) {
        if (e->kind == SPW_EXTENT_BLOCK) {
            scan_block(&pool->backing, e, infos, spw_pool_backing_index(&pool->backing, base),
                       count);
        }
    }
    scan_chunks(&pool->backing, infos, spw_pool_backing_index(&pool->backing, base), count);
    for (size_t i = 0; i < SPW_MOVES; i++) {
        scan_move(&pool->moves.each[i], infos, spw_pool_backing_index(&pool->backing, base), count);
    }
    *ret_address = base;
    *ret_room = find_room(&pool->space, /* whole */ false);
    spw_unlock(&pool->lock);
    return count;
}

/* ---- chunks on the host ---- */

/* The output of spw_pool_find_on_host. */
struct host_places {
    struct spw_move_place *places;
    size_t count, granules;
};

/* Lists the chunks of a block that are on the host. Returns false if the list is full. */
static bool list_block(const struct spw_backing *backing, const struct spw_extent *block,
                       struct host_places *list)
{
    size_t end = spw_pool_backing_index(backing, spw_pool_extent_end(block) - 1) + 1;

    for (size_t i = spw_pool_backing_index(backing, block->address), first, last; i < end;
         i = last) {
        first = spw_pool_backing_chunk_begin(backing, i);
        last = spw_pool_backing_chunk_end(backing, i);
        if (backing->granules[i].chunk == 0 || backing->granules[i].tier != SPW_TIER_HOST ||
            !spw_pool_movable_chunk(backing, block, first, last, SPW_TIER_DEVICE)) {
            continue;
        }
        if (list->granules + (last - first) > SPW_MOVE_GRANULES) {
            return false;
        }
        list->granules += last - first;
        list->places[list->count++] =
            (struct spw_move_place){.block = block->address,
                                    .granule = spw_pool_backing_address(backing, i),
                                    .to = SPW_TIER_DEVICE};
    }
    return true;
}

size_t spw_pool_find_on_host(struct spw_pool *pool, const uint64_t *addresses, size_t count,
                             struct spw_move_place ret_places[SPW_MOVE_GRANULES],
                             uint64_t *ret_bytes)
{
    struct host_places list = {.places = ret_places};
    bool more = true;

    spw_lock(&pool->lock);
    for (size_t i = 0; i < count && more; i++) {
        const struct spw_extent *block = spw_pool_address_map_get(&pool->blocks, addresses[i]);

        if (block != NULL && block->heap != SPW_HEAP_SLAB && block->heap != SPW_HEAP_SMALL) {
            more = list_block(&pool->backing, block, &list);
        }
    }
    spw_unlock(&pool->lock);
    *ret_bytes = list.granules * pool->backing.granule_bytes;
    return list.count;
}

void spw_pool_each_large(struct spw_pool *pool, spw_pool_visitor *visit, void *cookie)
{
    spw_lock(&pool->lock);
    for (const struct spw_extent *e = spw_pool_heaps_first_large(pool->space.heaps); e != NULL;
         e = spw_pool_heaps_next_large(pool->space.heaps, e)) {
        if (e->kind == SPW_EXTENT_BLOCK) {
            visit(cookie, e->address, e->bytes, e->site, pool->queues.clock - e->used);
        }
    }
    spw_unlock(&pool->lock);
}

void spw_pool_large_range(const struct spw_pool *pool, uint64_t *ret_address, uint64_t *ret_bytes,
                          uint64_t *ret_granule_bytes)
{
    *ret_address = pool->space.heaps[SPW_HEAP_LARGE].base;
    *ret_bytes = pool->backing.base + pool->backing.bytes - *ret_address;
    *ret_granule_bytes = pool->backing.granule_bytes;
}
