/* The last step of a move: maps new chunks in place of the old ones. After a failure, undoes this.
 *
 * Between unmapping the old chunks and mapping the new one, the addresses have no mapping. Both the
 * old and the new chunks have the content, so the content cannot be lost. However, the backend may
 * refuse to map a chunk or to give access. If the backend refuses the new chunk, and refuses an old
 * one twice, the old one is marked lost (lost.h). It stays with its granules until it can be
 * mapped. Until then the granules serve no other block, even if their own block is freed. */
#include "pool/move.h"

#include "pool/alloc/placement.h"
#include "pool/alloc/state.h"
#include "pool/memory/away.h"
#include "pool/memory/old_chunks.h"
#include "pool/space/heaps.h"
#include "pool/space/lost.h"

/* ---- the new chunks ---- */

static bool map(struct spw_backing *backing, const struct spw_move_item *item)
{
    return backing->vm->ops->map(backing->vm, spw_pool_move_address(backing, item),
                                 spw_pool_move_bytes(backing, item), item->chunk - 1) == SPW_OK;
}

static bool unmap(struct spw_backing *backing, const struct spw_move_item *item)
{
    uint64_t bytes = spw_pool_move_bytes(backing, item), done = bytes;

    return backing->vm->ops->unmap(backing->vm, spw_pool_move_address(backing, item), bytes, bytes,
                                   &done) == SPW_OK;
}

static bool give_access(struct spw_backing *backing, const struct spw_move_item *item)
{
    uint64_t bytes = spw_pool_move_bytes(backing, item);

    return spw_pool_backing_set_access(backing, spw_pool_move_address(backing, item), bytes,
                                       bytes) == SPW_OK;
}

/* Records that the new chunk is in place of the old ones, mapped or away. */
static void exchange(struct spw_pool *pool, struct spw_move_item *item, bool away)
{
    spw_pool_backing_exchange(&pool->backing, item->granule, item->to,
                              spw_pool_stock_order(item->count), item->chunk);
    if (!away) {
        spw_pool_away_forget(&pool->backing, item->granule, item->granule + item->count);
    }
    item->committed = true;
    spw_pool_placement_moved(pool, spw_pool_move_address(&pool->backing, item),
                             spw_pool_move_bytes(&pool->backing, item), item->to);
}

/* Handles an item whose new chunk is mapped but got no access. Returns true if the new chunk
 * stays. */
static bool rescue(struct spw_pool *pool, struct spw_move_item *item)
{
    if (give_access(&pool->backing, item)) {
        exchange(pool, item, /* away */ false);
        return true;
    }
    if (!unmap(&pool->backing, item)) {
        exchange(pool, item, /* away */ false);
        spw_pool_backing_mark_lost(&pool->backing, item->granule, SPW_LOST_ACCESS);
        return true;
    }
    spw_pool_old_chunks_put_back(&pool->backing, item->granule, item->granule + item->count);
    return false;
}

/* Maps the new chunks of items [first, last) in place of the old ones, without access. The items
 * are a run of neighbours. */
static enum spw_err map_run(struct spw_backing *backing, struct spw_move *move, size_t first,
                            size_t last)
{
    size_t begin = move->items[first].granule;
    size_t end = move->items[last - 1].granule + move->items[last - 1].count;
    size_t unmapped = spw_pool_old_chunks_unmap(backing, begin, end);

    for (size_t i = first; i < last; i++) {
        struct spw_move_item *item = &move->items[i];

        begin = item->granule;
        if (begin + item->count > unmapped || !map(backing, item)) {
            break;
        }
        item->mapped = true;
        begin += item->count;
    }
    spw_pool_old_chunks_put_back(backing, begin, unmapped);
    return begin < end ? SPW_E_NO_MEMORY : SPW_OK;
}

/* Returns the end of the longest run that begins with item `first`. A run consists of mapped
 * neighbours of one size. Each call gives access only to such a run. Granules between two runs may
 * be in use, and the driver may remove their access for a moment (UVM maps external memory
 * again). */
static size_t span_of(const struct spw_move *move, size_t first)
{
    size_t end = first + 1;

    while (end < move->count && move->items[end].mapped &&
           move->items[end].count == move->items[first].count &&
           spw_pool_move_adjoins(&move->items[end - 1], &move->items[end])) {
        end++;
    }
    return end;
}

/* Gives access to the mapped items of [first, last), and records these items as committed. */
static enum spw_err give_access_to_mapped(struct spw_pool *pool, struct spw_move *move,
                                          size_t first, size_t last, size_t *moved)
{
    enum spw_err err = SPW_OK;

    for (size_t i = first, end; i < last; i = end) {
        uint64_t address = spw_pool_move_address(&pool->backing, &move->items[i]);
        uint64_t size = spw_pool_move_bytes(&pool->backing, &move->items[i]);
        bool given;

        end = i + 1;
        if (!move->items[i].mapped) {
            continue;
        }
        end = span_of(move, i);
        given =
            spw_pool_backing_set_access(&pool->backing, address, (end - i) * size, size) == SPW_OK;
        for (size_t k = i; k < end; k++) {
            move->items[k].mapped = false;
            if (given) {
                exchange(pool, &move->items[k], /* away */ false);
                moved[move->items[k].to] += move->items[k].count;
            } else if (rescue(pool, &move->items[k])) {
                moved[move->items[k].to] += move->items[k].count;
            } else {
                err = SPW_E_NO_MEMORY;
            }
        }
    }
    return pool->backing.lost > 0 ? SPW_E_NO_MEMORY : err;
}

/* Returns the first free extent on a broken granule; NULL if there is none. */
static struct spw_extent *find_broken(const struct spw_space *space)
{
    for (struct spw_extent *e = spw_pool_heaps_first_large(space->heaps); e != NULL;
         e = spw_pool_heaps_next_large(space->heaps, e)) {
        if (e->kind == SPW_EXTENT_FREE &&
            spw_pool_backing_is_broken(space->backing, e->address, spw_pool_extent_end(e))) {
            return e;
        }
    }
    return NULL;
}

/* Calls a function for each free extent that shares granules with the blocks of items [i, last). */
static void for_free_extents(struct spw_space *space, const struct spw_move *move, size_t i,
                             size_t last,
                             void (*act)(struct spw_space *space, struct spw_extent *extent))
{
    for (struct spw_extent *e = spw_pool_heaps_first_large(space->heaps); e != NULL && i < last;
         e = spw_pool_heaps_next_large(space->heaps, e)) {
        while (i < last && spw_pool_move_address(space->backing, &move->items[i]) +
                                   spw_pool_move_bytes(space->backing, &move->items[i]) <=
                               e->address) {
            i++;
        }
        if (i < last && e->kind == SPW_EXTENT_FREE &&
            spw_pool_move_address(space->backing, &move->items[i]) < spw_pool_extent_end(e)) {
            act(space, e);
        }
    }
}

/* Updates the free extents that share granules with the blocks of items [first, last). Their tier
 * may have changed, or one of their granules may be broken. */
static void update_free_extents(struct spw_space *space, const struct spw_move *move, size_t first,
                                size_t last)
{
    struct spw_extent *broken;

    for_free_extents(space, move, first, last, spw_pool_space_update_tier);
    for_free_extents(space, move, first, last, spw_pool_space_join);
    while (space->backing->broken > 0 && (broken = find_broken(space)) != NULL) {
        spw_pool_space_retire(space, broken);
    }
}

/* Commits those of items [first, last) whose old chunks are away, and whose new chunk is on the
 * host. The new chunk takes over without a driver call, and is away as well. */
static void commit_away(struct spw_pool *pool, struct spw_move *move, size_t first, size_t last,
                        size_t *moved)
{
    for (size_t i = first; i < last; i++) {
        struct spw_move_item *item = &move->items[i];

        if (item->to == SPW_TIER_HOST && !item->left_out &&
            spw_pool_away_has_all(&pool->backing, item->granule, item->granule + item->count)) {
            exchange(pool, item, /* away */ true);
            moved[SPW_TIER_HOST] += item->count;
        }
    }
}

/* Commits items [first, last). Caller holds the lock. */
static enum spw_err commit(struct spw_pool *pool, struct spw_move *move, size_t first, size_t last,
                           uint64_t *ret_bytes)
{
    enum spw_err err = SPW_OK, access_err;
    size_t moved[SPW_TIER_COUNT] = {0};

    commit_away(pool, move, first, last, moved);
    for (size_t i = first, run; i < last && err == SPW_OK; i += run) {
        run = spw_pool_move_run(move, i);
        run = run < last - i ? run : last - i;
        if (!move->items[i].left_out && !move->items[i].committed) {
            err = map_run(&pool->backing, move, i, i + run);
        }
    }
    access_err = give_access_to_mapped(pool, move, first, last, moved);
    err = err == SPW_OK ? access_err : err;
    spw_pool_lost_announce(&pool->backing);
    update_free_extents(&pool->space, move, first, last);
    spw_counter_add(&pool->figures.counters->spilled_bytes,
                    moved[SPW_TIER_HOST] * pool->backing.granule_bytes);
    spw_counter_add(&pool->figures.counters->promoted_bytes,
                    moved[SPW_TIER_DEVICE] * pool->backing.granule_bytes);
    *ret_bytes = (moved[SPW_TIER_HOST] + moved[SPW_TIER_DEVICE]) * pool->backing.granule_bytes;
    return err;
}

enum spw_err spw_pool_move_commit(struct spw_pool *pool, struct spw_move *move, uint64_t *ret_bytes)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = commit(pool, move, 0, move->count, ret_bytes);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_commit_part(struct spw_pool *pool, struct spw_move *move, size_t part,
                                       uint64_t *ret_bytes)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = commit(pool, move, spw_pool_move_part_begin(move, part), move->ends[part], ret_bytes);
    spw_unlock(&pool->lock);
    return err;
}

/* ---- lost granules ---- */

enum spw_err spw_pool_move_remap_lost(struct spw_pool *pool)
{
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    if (pool->backing.lost > 0 && !spw_pool_lost_remap(&pool->space)) {
        err = SPW_E_AGAIN;
    }
    spw_unlock(&pool->lock);
    return err;
}

uint64_t spw_pool_move_lost(struct spw_pool *pool, uint64_t *ret_bytes)
{
    uint64_t address = 0;

    spw_lock(&pool->lock);
    *ret_bytes = pool->backing.lost * pool->backing.granule_bytes;
    if (pool->backing.lost > 0) {
        address = spw_pool_backing_address(&pool->backing, spw_pool_lost_first(&pool->backing));
    }
    spw_unlock(&pool->lock);
    return address;
}
