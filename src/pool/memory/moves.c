#include "pool/memory/moves.h"

#include "pool/memory/away.h"
#include "pool/memory/stock.h"

/* Leaves out the items that share a granule with [first, last), or only those that are detached. */
static void leave_out(struct spw_moves *moves, size_t first, size_t last, bool detached_only)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        struct spw_move *move = &moves->each[i];

        for (size_t k = 0; k < move->count; k++) {
            struct spw_move_item *item = &move->items[k];

            if (item->granule + item->count > first && item->granule < last &&
                (item->detached || !detached_only)) {
                item->left_out = true;
            }
        }
    }
}

void spw_pool_moves_attach(struct spw_backing *backing, size_t first, size_t last)
{
    leave_out(backing->moves, first, last, /* detached only */ true);
    spw_pool_away_put_back(backing, first, last);
}

void spw_pool_keep_in_place(struct spw_backing *backing, const struct spw_extent *block)
{
    size_t first, last;

    if (block->heap == SPW_HEAP_SLAB) {
        return;
    }
    first = spw_pool_backing_index(backing, block->address);
    last = spw_pool_backing_index(backing, spw_pool_extent_end(block) - 1);
    leave_out(backing->moves, first, last + 1, /* detached only */ false);
    spw_pool_away_put_back(backing, spw_pool_backing_chunk_begin(backing, first),
                           spw_pool_backing_chunk_end(backing, last));
}

static void drop_fence(struct spw_vm *vm, void **fence)
{
    if (*fence != NULL) {
        vm->ops->drop(vm, *fence);
        *fence = NULL;
    }
}

static void give_back(struct spw_backing *backing, struct spw_move *move)
{
    move->over = false;
    move->parts = 0;
    drop_fence(backing->vm, &move->drained);
    while (move->count > 0) {
        const struct spw_move_item *item = &move->items[--move->count];

        if (!item->committed) {
            spw_pool_stock_unhold(&backing->stock, item->to, spw_pool_stock_order(item->count),
                                  item->chunk);
        }
        for (size_t i = item->granule; i < item->granule + item->count; i++) {
            backing->granules[i].pinned = false;
        }
    }
}

void spw_pool_move_drop_all(struct spw_backing *backing)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        struct spw_move *move = &backing->moves->each[i];

        for (size_t part = 0; part < move->parts; part++) {
            for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
                drop_fence(backing->vm, &move->fences[part][tier]);
            }
        }
        give_back(backing, move);
    }
}

enum spw_err spw_pool_move_query(struct spw_vm *vm, void **fence)
{
    enum spw_err err = *fence == NULL ? SPW_OK : vm->ops->query(vm, *fence);

    if (err == SPW_OK) {
        drop_fence(vm, fence);
    }
    return err;
}

enum spw_err spw_pool_move_query_part(struct spw_vm *vm, struct spw_move *move, size_t part)
{
    enum spw_err err = SPW_OK;

    for (int tier = 0; tier < SPW_TIER_COUNT && err == SPW_OK; tier++) {
        err = spw_pool_move_query(vm, &move->fences[part][tier]);
    }
    return err;
}

enum spw_err spw_pool_move_query_all(struct spw_vm *vm, struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    for (size_t part = 0; part < move->parts && err == SPW_OK; part++) {
        err = spw_pool_move_query_part(vm, move, part);
    }
    return err;
}

enum spw_err spw_pool_move_end_if_finished(struct spw_backing *backing, struct spw_move *move)
{
    if (!move->over) {
        return SPW_OK;
    }
    if (spw_pool_move_query_all(backing->vm, move) != SPW_OK) {
        return SPW_E_AGAIN;
    }
    give_back(backing, move);
    return SPW_OK;
}

void spw_pool_move_end_finished(struct spw_backing *backing)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        (void)spw_pool_move_end_if_finished(backing, &backing->moves->each[i]);
    }
}
