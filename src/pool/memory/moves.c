#include "pool/memory/moves.h"

#include "pool/alloc/state.h"
#include "pool/memory/stock.h"

static void drop_fence(struct spw_pool *pool, void **fence)
{
    if (*fence != NULL) {
        pool->vm->ops->drop(pool->vm, *fence);
        *fence = NULL;
    }
}

static void give_back(struct spw_pool *pool, struct spw_move *move)
{
    move->over = false;
    move->parts = 0;
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
}

void spw_pool_move_drop_all(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        for (size_t part = 0; part < pool->moves[i].parts; part++) {
            for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
                drop_fence(pool, &pool->moves[i].fences[part][tier]);
            }
        }
        give_back(pool, &pool->moves[i]);
    }
}

enum spw_err spw_pool_move_query(struct spw_pool *pool, void **fence)
{
    enum spw_err err = *fence == NULL ? SPW_OK : pool->vm->ops->query(pool->vm, *fence);

    if (err == SPW_OK) {
        drop_fence(pool, fence);
    }
    return err;
}

enum spw_err spw_pool_move_query_part(struct spw_pool *pool, struct spw_move *move, size_t part)
{
    enum spw_err err = SPW_OK;

    for (int tier = 0; tier < SPW_TIER_COUNT && err == SPW_OK; tier++) {
        err = spw_pool_move_query(pool, &move->fences[part][tier]);
    }
    return err;
}

enum spw_err spw_pool_move_query_all(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    for (size_t part = 0; part < move->parts && err == SPW_OK; part++) {
        err = spw_pool_move_query_part(pool, move, part);
    }
    return err;
}

enum spw_err spw_pool_move_end_if_finished(struct spw_pool *pool, struct spw_move *move)
{
    if (!move->over) {
        return SPW_OK;
    }
    if (spw_pool_move_query_all(pool, move) != SPW_OK) {
        return SPW_E_AGAIN;
    }
    give_back(pool, move);
    return SPW_OK;
}

void spw_pool_move_end_finished(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        (void)spw_pool_move_end_if_finished(pool, &pool->moves[i]);
    }
}
