#include "pool/alloc/placement.h"

#include "pool/alloc/state.h"
#include "pool/attributes.h"
#include "pool/space/lost.h"

static struct spw_account *account_of(const struct spw_figures *figures, uint8_t number)
{
    return figures->accounts != NULL && number > 0 && number <= SPW_ACCOUNTS
               ? &figures->accounts[number - 1]
               : NULL;
}

bool spw_pool_placement_allows(const struct spw_figures *figures,
                               const struct spw_pool_placement *placement, uint64_t bytes)
{
    const struct spw_account *account = account_of(figures, placement->account);

    return account == NULL || placement->limit_bytes == UINT64_MAX || placement->on_host ||
           spw_counter_get(&account->live) - spw_counter_get(&account->host) + bytes <=
               placement->limit_bytes;
}

void spw_pool_placement_begin(struct spw_pool *pool, struct spw_extent *block,
                              const struct spw_pool_placement *placement)
{
    struct spw_account *account = account_of(&pool->figures, placement->account);

    uint64_t host = block->heap == SPW_HEAP_SLAB ? block->bytes : 0;

    if (host == 0 && (placement->on_host || placement->host_permille > 0)) {
        host =
            spw_pool_backing_host_bytes(&pool->backing, block->address, spw_pool_extent_end(block));
    }
    block->placed = (uint32_t)(host / SPW_UNIT_BYTES);
    pool->figures.placed_bytes += host;
    block->priority = placement->priority;
    block->fixed = placement->fixed ? SPW_FIXED_BY_PLACEMENT : 0;
    if (placement->fixed) {
        spw_pool_keep_in_place(&pool->backing, block);
        spw_pool_lost_announce(&pool->backing);
    }
    if (account != NULL) {
        block->account = placement->account;
        spw_counter_shift(&account->allocs, 1);
        spw_pool_account_move(account, (int64_t)spw_pool_extent_held(block), (int64_t)host);
    }
}

void spw_pool_placement_end(struct spw_figures *figures, const struct spw_extent *block)
{
    struct spw_account *account = account_of(figures, block->account);
    uint64_t host = (uint64_t)block->placed * SPW_UNIT_BYTES;

    figures->placed_bytes -= host;
    if (account != NULL) {
        spw_pool_account_move(account, -(int64_t)spw_pool_extent_held(block), -(int64_t)host);
    }
}

void spw_pool_placement_moved(struct spw_pool *pool, uint64_t address, uint64_t bytes,
                              enum spw_tier to)
{
    uint64_t end = address + bytes;
    const struct spw_extent *e =
        pool->figures.accounts != NULL ? spw_pool_space_find(&pool->space, address) : NULL;

    for (; e != NULL && e->address < end; e = e->next) {
        if (e->kind == SPW_EXTENT_BLOCK && e->account != 0) {
            struct spw_account *account = account_of(&pool->figures, e->account);
            uint64_t first = e->address > address ? e->address : address;
            uint64_t last = spw_pool_extent_end(e) < end ? spw_pool_extent_end(e) : end;

            spw_counter_shift(to == SPW_TIER_HOST ? &account->spilled : &account->promoted,
                              (int64_t)(last - first));
        }
    }
}

enum spw_err spw_pool_account_add(struct spw_pool *pool, const struct spw_pool_placement *placement,
                                  uint64_t bytes, bool host)
{
    struct spw_account *account = account_of(&pool->figures, placement->account);
    enum spw_err err = SPW_OK;

    if (account == NULL) {
        return SPW_OK;
    }
    spw_lock(&pool->lock);
    if (!host && !spw_pool_placement_allows(&pool->figures, placement, bytes)) {
        err = SPW_E_QUOTA;
    } else {
        spw_counter_shift(&account->allocs, 1);
        spw_pool_account_move(account, (int64_t)bytes, host ? (int64_t)bytes : 0);
    }
    spw_unlock(&pool->lock);
    return err;
}

/* Adds to an account, if there is one. */
static void shift(struct spw_pool *pool, uint8_t number, int64_t live, int64_t host)
{
    struct spw_account *account = account_of(&pool->figures, number);

    if (account != NULL) {
        spw_lock(&pool->lock);
        spw_pool_account_move(account, live, host);
        spw_unlock(&pool->lock);
    }
}

void spw_pool_account_remove(struct spw_pool *pool, uint8_t number, uint64_t bytes, bool host)
{
    shift(pool, number, -(int64_t)bytes, host ? -(int64_t)bytes : 0);
}

void spw_pool_account_to_device(struct spw_pool *pool, uint8_t number, uint64_t bytes)
{
    shift(pool, number, 0, -(int64_t)bytes);
}
