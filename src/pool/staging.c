#include "pool/staging.h"

#include "pool/state.h"

uint64_t spw_pool_staging_address(const struct spw_pool *pool, const struct spw_move *move,
                                  size_t item)
{
    return move->staging + item * pool->config.granule_bytes;
}

static void unpin(struct spw_pool *pool, const struct spw_move_item *item)
{
    pool->backing.granules[item->granule].pinned = false;
}

enum spw_err spw_pool_staging_map(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        err = pool->ops->map(pool->vm, spw_pool_staging_address(pool, move, i),
                             pool->config.granule_bytes, move->items[i].chunk - 1);
        move->items[i].staged = err == SPW_OK;
    }
    if (err == SPW_OK) {
        err = pool->ops->set_access(pool->vm, move->staging,
                                    move->count * pool->config.granule_bytes);
    }
    return err;
}

/* Unmaps the staging window. False when the backend refused in part; that part stays marked. */
static bool unstage(struct spw_pool *pool, struct spw_move *move)
{
    bool all = true;

    for (size_t i = 0, first; i < move->count;) {
        uint64_t bytes, done;

        if (!move->items[i].staged) {
            i++;
            continue;
        }
        for (first = i; i < move->count && move->items[i].staged; i++) {
        }
        done = bytes = (i - first) * pool->config.granule_bytes;
        if (pool->ops->unmap(pool->vm, spw_pool_staging_address(pool, move, first), bytes,
                             pool->config.granule_bytes, &done) == SPW_OK) {
            done = bytes;
        } else {
            all = false;
        }
        for (size_t k = first; k < first + (size_t)(done / pool->config.granule_bytes); k++) {
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

static enum spw_tier other_tier(enum spw_tier tier)
{
    return tier == SPW_TIER_HOST ? SPW_TIER_DEVICE : SPW_TIER_HOST;
}

bool spw_pool_staging_end(struct spw_pool *pool, struct spw_move *move)
{
    if (!unstage(pool, move)) {
        return false;
    }
    drop_fence(pool, &move->drained);
    while (move->count > 0) {
        const struct spw_move_item *item = &move->items[--move->count];

        spw_pool_backing_unhold(&pool->backing, item->committed ? other_tier(item->to) : item->to,
                                item->chunk);
        unpin(pool, item);
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
