#include "pool/swap.h"

#include "pool/alloc/placement.h"
#include "pool/alloc/state.h"
#include "pool/memory/old_chunks.h"
#include "pool/move/movable.h"
#include "pool/space/heaps.h"

/* ---- finding ---- */

/* Returns true if the chunk of granules [first, last), under `block`, may be swapped out. */
static bool qualifies(const struct spw_backing *backing, const struct spw_extent *block,
                      size_t first, size_t last)
{
    return backing->granules[first].chunk != 0 && !backing->granules[first].swapped &&
           spw_pool_movable_chunk(backing, block, first, last, SPW_TIER_HOST);
}

/* Finds the first chunk of a block from `address` on. */
static bool find_in_block(const struct spw_backing *backing, const struct spw_extent *block,
                          uint64_t address, struct spw_swap_chunk *ret_chunk)
{
    uint64_t at = address > block->address ? address : block->address;

    while (at < spw_pool_extent_end(block)) {
        size_t index = spw_pool_backing_index(backing, at);
        size_t first = spw_pool_backing_chunk_begin(backing, index);
        size_t last = spw_pool_backing_chunk_end(backing, index);
        uint64_t begin = spw_pool_backing_address(backing, first);

        *ret_chunk = (struct spw_swap_chunk){.address = begin,
                                             .bytes = (last - first) * backing->granule_bytes,
                                             .tier = backing->granules[first].tier};
        if (qualifies(backing, block, first, last)) {
            return true;
        }
        at = begin + ret_chunk->bytes;
    }
    return false;
}

/* Returns the rank of a chunk, which depends on all blocks on it. `block` is the first of them. */
static enum spw_swap_rank rank_of(const struct spw_extent *block, uint64_t end)
{
    enum spw_swap_rank rank = SPW_SWAP_OTHER;

    for (const struct spw_extent *e = block; e != NULL && e->address < end; e = e->next) {
        if (e->kind != SPW_EXTENT_BLOCK) {
            continue;
        }
        if ((e->fixed & SPW_FIXED_BY_GRAPH) != 0) {
            return SPW_SWAP_KEPT_BY_GRAPH;
        }
        if ((e->fixed & SPW_NAMED_BY_GRAPH) != 0) {
            rank = SPW_SWAP_NAMED_BY_GRAPH;
        }
    }
    return rank;
}

/* Returns the extent where the search begins. */
static const struct spw_extent *extent_from(const struct spw_space *space, uint64_t address)
{
    const struct spw_extent *extent = address > 0 ? spw_pool_space_find(space, address - 1) : NULL;

    return extent != NULL ? extent : spw_pool_heaps_first_large(space->heaps);
}

bool spw_pool_swap_find(struct spw_pool *pool, uint64_t address, struct spw_swap_chunk *ret_chunk)
{
    bool found = false;

    spw_lock(&pool->lock);
    for (const struct spw_extent *e = extent_from(&pool->space, address); e != NULL && !found;
         e = spw_pool_heaps_next_large(pool->space.heaps, e)) {
        found = e->kind == SPW_EXTENT_BLOCK && find_in_block(&pool->backing, e, address, ret_chunk);
        if (found) {
            ret_chunk->rank = rank_of(e, ret_chunk->address + ret_chunk->bytes);
        }
    }
    spw_unlock(&pool->lock);
    return found;
}

/* ---- out ---- */

/* Marks the granules [first, last) of a chunk as swapped out, or removes the mark. A pin prevents
 * them from being stolen or moved. */
static void mark(struct spw_backing *backing, size_t first, size_t last, bool out)
{
    for (size_t i = first; i < last; i++) {
        backing->granules[i].swapped = backing->granules[i].pinned = out;
    }
    backing->swapped += out ? last - first : first - last;
    spw_counter_shift(&backing->counters->swapped_bytes,
                      (out ? 1 : -1) * (int64_t)((last - first) * backing->granule_bytes));
}

enum spw_err spw_pool_swap_out(struct spw_pool *pool, const struct spw_swap_chunk *chunk)
{
    size_t first = spw_pool_backing_index(&pool->backing, chunk->address);
    size_t last = first + (size_t)(chunk->bytes / pool->backing.granule_bytes);
    enum spw_err err = SPW_E_AGAIN;

    spw_lock(&pool->lock);
    if (spw_pool_old_chunks_unmap(&pool->backing, first, last) == last) {
        spw_pool_backing_give_up(&pool->backing, first, last);
        mark(&pool->backing, first, last, true);
        (void)spw_pool_stock_release(&pool->backing.stock, chunk->tier, last - first);
        err = SPW_OK;
    }
    spw_unlock(&pool->lock);
    return err;
}

/* ---- in ---- */

static unsigned order_of(const struct spw_backing *backing, const struct spw_swap_chunk *chunk)
{
    return spw_pool_stock_order((size_t)(chunk->bytes / backing->granule_bytes));
}

static void let_go(struct spw_backing *backing, struct spw_swap_chunk *chunk)
{
    spw_pool_stock_unhold(&backing->stock, chunk->held_tier, order_of(backing, chunk), chunk->held);
    chunk->held = 0;
}

/* Gets a chunk and maps it without access. */
static enum spw_err map(struct spw_backing *backing, struct spw_swap_chunk *chunk,
                        enum spw_tier tier)
{
    uint64_t alias;
    enum spw_err err =
        spw_pool_stock_hold(&backing->stock, tier, order_of(backing, chunk),
                            spw_pool_stock_room(&backing->stock, tier), &chunk->held, &alias);

    if (err == SPW_OK) {
        chunk->held_tier = tier;
        err = backing->vm->ops->map(backing->vm, chunk->address, chunk->bytes, chunk->held - 1);
        if (err != SPW_OK) {
            let_go(backing, chunk);
        }
    }
    return err;
}

/* Gives access to the mapped chunk. After a failure, unmaps it. */
static enum spw_err give_access(struct spw_backing *backing, struct spw_swap_chunk *chunk)
{
    enum spw_err err =
        spw_pool_backing_set_access(backing, chunk->address, chunk->bytes, chunk->bytes);
    uint64_t done;

    if (err != SPW_OK && backing->vm->ops->unmap(backing->vm, chunk->address, chunk->bytes,
                                                 chunk->bytes, &done) == SPW_OK) {
        let_go(backing, chunk);
    }
    return err;
}

/* Accounts for memory that comes back to another tier. */
static void note_tier(struct spw_pool *pool, const struct spw_swap_chunk *chunk, enum spw_tier tier)
{
    uint64_t end = chunk->address + chunk->bytes;

    spw_counter_shift(tier == SPW_TIER_HOST ? &pool->figures.counters->spilled_bytes
                                            : &pool->figures.counters->promoted_bytes,
                      (int64_t)chunk->bytes);

    for (struct spw_extent *e = spw_pool_space_find(&pool->space, chunk->address);
         e != NULL && e->address < end; e = e->next) {
        if (e->kind == SPW_EXTENT_FREE) {
            spw_pool_space_update_tier(&pool->space, e);
        }
    }
    for (struct spw_extent *e = spw_pool_space_find(&pool->space, chunk->address);
         e != NULL && e->address < end; e = e->next) {
        spw_pool_space_join(&pool->space, e);
    }
    spw_pool_placement_moved(pool, chunk->address, chunk->bytes, tier);
}

static enum spw_err swap_in(struct spw_pool *pool, struct spw_swap_chunk *chunk, enum spw_tier tier)
{
    size_t first = spw_pool_backing_index(&pool->backing, chunk->address);
    size_t count = (size_t)(chunk->bytes / pool->backing.granule_bytes);
    enum spw_err err = chunk->held == 0 ? map(&pool->backing, chunk, tier) : SPW_OK;

    if (err == SPW_OK) {
        err = give_access(&pool->backing, chunk);
    }
    if (err != SPW_OK) {
        return err;
    }
    spw_pool_backing_install(&pool->backing, first, chunk->held_tier,
                             order_of(&pool->backing, chunk), chunk->held);
    mark(&pool->backing, first, first + count, false);
    if (chunk->held_tier != chunk->tier) {
        note_tier(pool, chunk, chunk->held_tier);
    }
    chunk->held = 0;
    return SPW_OK;
}

enum spw_err spw_pool_swap_in(struct spw_pool *pool, struct spw_swap_chunk *chunk,
                              enum spw_tier tier)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = swap_in(pool, chunk, tier);
    spw_unlock(&pool->lock);
    return err;
}

/* ---- content ---- */

enum spw_err spw_pool_read(struct spw_pool *pool, void *to, uint64_t address, uint64_t bytes)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->backing.vm->ops->read(pool->backing.vm, to, address, bytes);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_write(struct spw_pool *pool, uint64_t address, const void *from,
                            uint64_t bytes)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->backing.vm->ops->write(pool->backing.vm, address, from, bytes);
    spw_unlock(&pool->lock);
    return err;
}
