#include "pool/staging.h"

#include "pool/stock.h"
#include "pool/state.h"

uint64_t spw_pool_staging_address(const struct spw_pool *pool, const struct spw_move *move,
                                  size_t item)
{
    return move->staging + move->items[item].staged_at * pool->config.granule_bytes;
}

/* Returns the end of the items of one size from `first` on, below `last`. */
static size_t end_of_size(const struct spw_move *move, size_t first, size_t last)
{
    size_t end = first + 1;

    while (end < last && move->items[end].count == move->items[first].count) {
        end++;
    }
    return end;
}

/* Returns the bytes of items [first, last), which are neighbours in the window. */
static uint64_t bytes_of(const struct spw_pool *pool, const struct spw_move *move, size_t first,
                         size_t last)
{
    return (last - first) * spw_pool_move_bytes(pool, &move->items[first]);
}

static enum spw_err give_access(struct spw_pool *pool, const struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    for (size_t i = 0, end; i < move->count && err == SPW_OK; i = end) {
        end = end_of_size(move, i, move->count);
        err = pool->ops->set_access(pool->vm, spw_pool_staging_address(pool, move, i),
                                    bytes_of(pool, move, i, end),
                                    spw_pool_move_bytes(pool, &move->items[i]));
    }
    return err;
}

enum spw_err spw_pool_staging_map(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err = SPW_OK;
    size_t at = 0;

    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        move->items[i].staged_at = at;
        at += move->items[i].count;
        err = pool->ops->map(pool->vm, spw_pool_staging_address(pool, move, i),
                             spw_pool_move_bytes(pool, &move->items[i]), move->items[i].chunk - 1);
        move->items[i].staged = err == SPW_OK;
    }
    return err == SPW_OK ? give_access(pool, move) : err;
}

/* Unmaps the staging window. False when the backend refused in part; that part stays marked. */
static bool unstage(struct spw_pool *pool, struct spw_move *move)
{
    bool all = true;

    for (size_t i = 0, first; i < move->count;) {
        uint64_t bytes, done, size;

        if (!move->items[i].staged) {
            i++;
            continue;
        }
        for (first = i; i < move->count && move->items[i].staged &&
                        move->items[i].count == move->items[first].count;
             i++) {
        }
        size = spw_pool_move_bytes(pool, &move->items[first]);
        done = bytes = bytes_of(pool, move, first, i);
        if (pool->ops->unmap(pool->vm, spw_pool_staging_address(pool, move, first), bytes, size,
                             &done) == SPW_OK) {
            done = bytes;
        } else {
            all = false;
        }
        for (size_t k = first; k < first + (size_t)(done / size); k++) {
            move->items[k].staged = false;
        }
    }
    return all;
}

static void drop_fence(struct spw_pool *pool, void **fence)
{
    if (*fence != NULL) {
        pool->ops->drop(pool->vm, *fence);
        *fence = NULL;
    }
}

bool spw_pool_staging_end(struct spw_pool *pool, struct spw_move *move)
{
    if (!unstage(pool, move)) {
        return false;
    }
    drop_fence(pool, &move->drained);
    while (move->count > 0) {
        const struct spw_move_item *item = &move->items[--move->count];

        if (!item->committed) {
            spw_pool_stock_unhold(&pool->backing.stock, item->to, spw_pool_stock_order(item->count),
                                  item->chunk);
        }
        for (size_t i = item->granule; i < item->granule + item->count; i++) {
            pool->backing.granules[i].pinned = false;
        }
    }
    return true;
}

static void drop(struct spw_pool *pool, struct spw_move *move)
{
    move->over = false;
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        drop_fence(pool, &move->fences[tier]);
    }
    if (!spw_pool_staging_end(pool, move)) {
        /* The backend keeps the mapping, and with it the memory. */
        for (size_t i = 0; i < move->count; i++) {
            move->items[i].staged = false;
        }
        (void)spw_pool_staging_end(pool, move);
    }
}

void spw_pool_staging_drop(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        drop(pool, &pool->moves[i]);
    }
}

enum spw_err spw_pool_staging_query(struct spw_pool *pool, void **fence)
{
    enum spw_err err = *fence == NULL ? SPW_OK : pool->ops->query(pool->vm, *fence);

    if (err == SPW_OK) {
        drop_fence(pool, fence);
    }
    return err;
}

enum spw_err spw_pool_staging_end_if_finished(struct spw_pool *pool, struct spw_move *move)
{
    if (!move->over) {
        return SPW_OK;
    }
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        if (spw_pool_staging_query(pool, &move->fences[tier]) != SPW_OK) {
            return SPW_E_AGAIN;
        }
    }
    move->over = !spw_pool_staging_end(pool, move);
    return move->over ? SPW_E_AGAIN : SPW_OK;
}

void spw_pool_staging_end_finished(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        (void)spw_pool_staging_end_if_finished(pool, &pool->moves[i]);
    }
}
