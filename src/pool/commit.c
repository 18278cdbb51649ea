/* The last step of a move: new chunks in the place of the old ones, and the way back.
 *
 * Between the two the addresses are mapped to nothing. Both chunks have the content then, so it is
 * not lost whatever the seam refuses, but it may not be reached: the seam gives access to a
 * mapping alone, and to the next one at the same address anew. A granule is out of reach only if
 * the seam refuses that from the unmap on, to the new chunk and to the old one, again and again.
 * It is remembered then, keeps its chunk, serves nobody else even when its block is freed, and is
 * asked for again as long as the caller has patience, before each piece of work, and before each
 * move: the first time that it is granted everything is as it was. */
#include "pool/move.h"

#include "pool/state.h"

static uint64_t chunk_of(const struct spw_pool *pool, const struct spw_move_item *item)
{
    return pool->backing.granules[item->granule].chunk;
}

static bool map(struct spw_pool *pool, const struct spw_move_item *item, uint64_t chunk)
{
    return pool->ops->map(pool->vm, spw_pool_move_address(pool, item), pool->config.granule_bytes,
                          chunk - 1) == SPW_OK;
}

static bool unmap(struct spw_pool *pool, const struct spw_move_item *item)
{
    uint64_t granule = pool->config.granule_bytes, done = granule;

    return pool->ops->unmap(pool->vm, spw_pool_move_address(pool, item), granule, granule, &done) ==
           SPW_OK;
}

static bool give_access(struct spw_pool *pool, const struct spw_move_item *item)
{
    return pool->ops->set_access(pool->vm, spw_pool_move_address(pool, item),
                                 pool->config.granule_bytes) == SPW_OK;
}

/* Enters in the books that the new chunk is in the place of the old one. */
static void exchange(struct spw_pool *pool, struct spw_move_item *item)
{
    item->chunk = spw_pool_backing_exchange(&pool->backing, item->granule, item->to, item->chunk);
    item->committed = true;
    spw_pool_placement_moved(pool, spw_pool_move_address(pool, item), item->to);
}

/* Puts the old chunk of an item, where nothing is mapped now, back in its place. */
static void put_back(struct spw_pool *pool, const struct spw_move_item *item)
{
    if (!map(pool, item, chunk_of(pool, item)) && !map(pool, item, chunk_of(pool, item))) {
        spw_pool_backing_lose(&pool->backing, item->granule, SPW_LOST_MAPPING);
    } else if (!give_access(pool, item) && !give_access(pool, item)) {
        spw_pool_backing_lose(&pool->backing, item->granule, SPW_LOST_ACCESS);
    }
}

/* The new chunk of an item is mapped, but access was refused. True when it can stay nevertheless.
 */
static bool rescue(struct spw_pool *pool, struct spw_move_item *item)
{
    if (give_access(pool, item)) {
        exchange(pool, item);
        return true;
    }
    if (!unmap(pool, item)) {
        exchange(pool, item);
        spw_pool_backing_lose(&pool->backing, item->granule, SPW_LOST_ACCESS);
        return true;
    }
    put_back(pool, item);
    return false;
}

/* Maps the new chunks of items [first, last), a run of neighbours, in the place of the old ones.
 * Nobody has access there yet. */
static enum spw_err map_run(struct spw_pool *pool, struct spw_move *move, size_t first, size_t last)
{
    uint64_t granule = pool->config.granule_bytes, bytes = (last - first) * granule, done = bytes;
    size_t mapped = first;
    enum spw_err err;

    err = pool->ops->unmap(pool->vm, spw_pool_move_address(pool, &move->items[first]), bytes,
                           granule, &done);
    if (err != SPW_OK) {
        last = first + (size_t)(done / granule);
    }
    while (mapped < last && map(pool, &move->items[mapped], move->items[mapped].chunk)) {
        move->items[mapped++].mapped = true;
    }
    for (size_t i = mapped; i < last; i++) {
        err = SPW_E_NO_MEMORY;
        put_back(pool, &move->items[i]);
    }
    return err;
}

/* Whether access can be given from one item to the next in one go: everything between the two is
 * mapped, and not much. */
static bool is_bridged(const struct spw_pool *pool, const struct spw_move_item *from,
                       const struct spw_move_item *to)
{
    enum { FAR = 128 };

    if (to->granule - from->granule > FAR) {
        return false;
    }
    for (size_t g = from->granule + 1; g < to->granule; g++) {
        const struct spw_granule *between = &pool->backing.granules[g];

        if (between->chunk == 0 || between->broken || between->lost != SPW_LOST_NOTHING) {
            return false;
        }
    }
    return true;
}

/* The item behind the last one to which access can be given together with `first`: of all that lie
 * between, only those count that are mapped. */
static size_t span_of(const struct spw_pool *pool, const struct spw_move *move, size_t first)
{
    size_t last = first;

    for (size_t i = first + 1; i < move->count; i++) {
        if (move->items[i].mapped) {
            if (!is_bridged(pool, &move->items[last], &move->items[i])) {
                break;
            }
            last = i;
        }
    }
    return last + 1;
}

/* Gives access to what is mapped, and enters it in the books. */
static enum spw_err settle_mapped(struct spw_pool *pool, struct spw_move *move, size_t *moved)
{
    enum spw_err err = SPW_OK;

    for (size_t i = 0, end; i < move->count; i = end) {
        uint64_t address = spw_pool_move_address(pool, &move->items[i]);
        bool given;

        end = i + 1;
        if (!move->items[i].mapped) {
            continue;
        }
        end = span_of(pool, move, i);
        given = pool->ops->set_access(pool->vm, address,
                                      (move->items[end - 1].granule - move->items[i].granule + 1) *
                                          pool->config.granule_bytes) == SPW_OK;
        for (size_t k = i; k < end; k++) {
            if (!move->items[k].mapped) {
                continue;
            }
            move->items[k].mapped = false;
            if (given) {
                exchange(pool, &move->items[k]);
                moved[move->items[k].to]++;
            } else if (rescue(pool, &move->items[k])) {
                moved[move->items[k].to]++;
            } else {
                err = SPW_E_NO_MEMORY;
            }
        }
    }
    return pool->backing.lost > 0 ? SPW_E_NO_MEMORY : err;
}

/* The first free extent on a granule that is broken now. */
static struct spw_extent *find_broken(const struct spw_pool *pool)
{
    for (struct spw_extent *e = spw_pool_space_first_large(&pool->space); e != NULL;
         e = spw_pool_space_next_large(&pool->space, e)) {
        if (e->kind == SPW_EXTENT_FREE &&
            spw_pool_backing_is_broken(&pool->backing, e->address, spw_pool_extent_end(e))) {
            return e;
        }
    }
    return NULL;
}

/* Free extents beside the blocks may be on another tier now, or broken. */
static void look_again(struct spw_pool *pool, const struct spw_move *move)
{
    uint64_t granule = pool->config.granule_bytes;
    struct spw_extent *broken;
    size_t i = 0;

    for (struct spw_extent *e = spw_pool_space_first_large(&pool->space);
         e != NULL && i < move->count; e = spw_pool_space_next_large(&pool->space, e)) {
        while (i < move->count &&
               spw_pool_move_address(pool, &move->items[i]) + granule <= e->address) {
            i++;
        }
        if (i < move->count && e->kind == SPW_EXTENT_FREE &&
            spw_pool_move_address(pool, &move->items[i]) < spw_pool_extent_end(e)) {
            spw_pool_space_rehost(&pool->space, e);
        }
    }
    while (pool->backing.broken > 0 && (broken = find_broken(pool)) != NULL) {
        spw_pool_space_condemn(&pool->space, broken);
    }
}

enum spw_err spw_pool_move_commit(struct spw_pool *pool, struct spw_move *move, uint64_t *ret_bytes)
{
    enum spw_err err = SPW_OK, settled;
    size_t moved[SPW_TIER_COUNT] = {0};

    spw_lock(&pool->lock);
    for (size_t i = 0, run; i < move->count && err == SPW_OK; i += run) {
        run = spw_pool_move_run(move, i);
        if (!move->items[i].left_out) {
            err = map_run(pool, move, i, i + run);
        }
    }
    settled = settle_mapped(pool, move, moved);
    err = err == SPW_OK ? settled : err;
    spw_pool_lazy_tell_lost(pool);
    look_again(pool, move);
    spw_counter_add(&pool->counters->spilled_bytes,
                    moved[SPW_TIER_HOST] * pool->config.granule_bytes);
    spw_counter_add(&pool->counters->promoted_bytes,
                    moved[SPW_TIER_DEVICE] * pool->config.granule_bytes);
    *ret_bytes = (moved[SPW_TIER_HOST] + moved[SPW_TIER_DEVICE]) * pool->config.granule_bytes;
    spw_unlock(&pool->lock);
    return err;
}

/* ---- what was lost ---- */

static void mend_granule(struct spw_pool *pool, size_t index)
{
    const struct spw_granule *granule = &pool->backing.granules[index];
    uint64_t bytes = pool->config.granule_bytes;
    uint64_t address = pool->backing.base + index * bytes;

    if (granule->lost == SPW_LOST_MAPPING) {
        if (pool->ops->map(pool->vm, address, bytes, granule->chunk - 1) != SPW_OK) {
            return;
        }
        spw_pool_backing_lose(&pool->backing, index, SPW_LOST_ACCESS);
    }
    if (pool->ops->set_access(pool->vm, address, bytes) == SPW_OK) {
        spw_pool_backing_lose(&pool->backing, index, SPW_LOST_NOTHING);
    }
}

/* The first granule of which something is lost. There is one. */
static size_t first_lost(const struct spw_pool *pool)
{
    size_t index = 0;

    while (pool->backing.granules[index].lost == SPW_LOST_NOTHING) {
        index++;
    }
    return index;
}

bool spw_pool_remap_lost(struct spw_pool *pool)
{
    size_t before = pool->backing.lost, index = 0;

    /* The driver may need memory for its tables. */
    (void)spw_pool_backing_release(&pool->backing, SPW_TIER_DEVICE, SIZE_MAX);
    for (size_t left = before; left > 0; index++) {
        if (pool->backing.granules[index].lost != SPW_LOST_NOTHING) {
            mend_granule(pool, index);
            left--;
        }
    }
    if (pool->backing.lost < before) {
        spw_pool_space_revive(&pool->space);
    }
    spw_pool_lazy_tell_lost(pool);
    return pool->backing.lost == 0;
}

enum spw_err spw_pool_move_remap_lost(struct spw_pool *pool)
{
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    if (pool->backing.lost > 0 && !spw_pool_remap_lost(pool)) {
        err = SPW_E_AGAIN;
    }
    spw_unlock(&pool->lock);
    return err;
}

uint64_t spw_pool_move_lost(struct spw_pool *pool, uint64_t *ret_bytes)
{
    uint64_t address = 0;

    spw_lock(&pool->lock);
    *ret_bytes = pool->backing.lost * pool->config.granule_bytes;
    if (pool->backing.lost > 0) {
        address = pool->backing.base + first_lost(pool) * pool->config.granule_bytes;
    }
    spw_unlock(&pool->lock);
    return address;
}
