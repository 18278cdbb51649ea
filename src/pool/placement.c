#include "pool/placement.h"

#include "pool/state.h"
#include "pool/attributes.h"

static struct spw_tally *tally_of(const struct spw_pool *pool, uint8_t rule)
{
    return pool->config.tallies != NULL && rule > 0 && rule <= SPW_RULES
               ? &pool->config.tallies[rule - 1]
               : NULL;
}

static void move(struct spw_tally *tally, int64_t live, int64_t host)
{
    spw_counter_shift(&tally->live, live);
    spw_counter_peak(&tally->live_peak, &tally->live);
    spw_counter_shift(&tally->host, host);
    spw_counter_peak(&tally->host_peak, &tally->host);
}

bool spw_pool_placement_allows(const struct spw_pool *pool, const struct spw_pool_placement *wish,
                               uint64_t bytes)
{
    const struct spw_tally *tally = tally_of(pool, wish->rule);

    return tally == NULL || wish->most_bytes == UINT64_MAX || wish->on_host ||
           spw_counter_get(&tally->live) - spw_counter_get(&tally->host) + bytes <=
               wish->most_bytes;
}

void spw_pool_placement_begin(struct spw_pool *pool, struct spw_extent *block,
                              const struct spw_pool_placement *wish)
{
    struct spw_tally *tally = tally_of(pool, wish->rule);

    uint64_t host = block->heap == SPW_HEAP_SLAB ? block->bytes : 0;

    if (host == 0 && (wish->on_host || wish->host_permille > 0)) {
        host =
            spw_pool_backing_host_bytes(&pool->backing, block->address, spw_pool_extent_end(block));
    }
    block->placed = (uint32_t)(host / SPW_UNIT_BYTES);
    pool->placed_bytes += host;
    block->priority = wish->priority;
    block->fixed = wish->fixed ? SPW_FIXED_POLICY : 0;
    if (tally != NULL) {
        block->rule = wish->rule;
        spw_counter_shift(&tally->matched, 1);
        move(tally, (int64_t)spw_pool_extent_held(block), (int64_t)host);
    }
}

void spw_pool_placement_end(struct spw_pool *pool, const struct spw_extent *block)
{
    uint64_t host = (uint64_t)block->placed * SPW_UNIT_BYTES;

    pool->placed_bytes -= host;
    move(tally_of(pool, block->rule), -(int64_t)spw_pool_extent_held(block), -(int64_t)host);
}

void spw_pool_placement_moved(struct spw_pool *pool, uint64_t address, enum spw_tier to)
{
    uint64_t end = address + pool->config.granule_bytes;
    const struct spw_extent *e =
        pool->config.tallies != NULL ? spw_pool_space_find(&pool->space, address) : NULL;

    for (; e != NULL && e->address < end; e = e->next) {
        if (e->kind == SPW_EXTENT_BLOCK && e->rule != 0) {
            struct spw_tally *tally = tally_of(pool, e->rule);
            uint64_t first = e->address > address ? e->address : address;
            uint64_t last = spw_pool_extent_end(e) < end ? spw_pool_extent_end(e) : end;

            spw_counter_shift(to == SPW_TIER_HOST ? &tally->spilled : &tally->promoted,
                              (int64_t)(last - first));
        }
    }
}

enum spw_err spw_pool_tally_add(struct spw_pool *pool, const struct spw_pool_placement *wish,
                                uint64_t bytes, bool host)
{
    struct spw_tally *tally = tally_of(pool, wish->rule);
    enum spw_err err = SPW_OK;

    if (tally == NULL) {
        return SPW_OK;
    }
    spw_lock(&pool->lock);
    if (!host && !spw_pool_placement_allows(pool, wish, bytes)) {
        err = SPW_E_QUOTA;
    } else {
        spw_counter_shift(&tally->matched, 1);
        move(tally, (int64_t)bytes, host ? (int64_t)bytes : 0);
    }
    spw_unlock(&pool->lock);
    return err;
}

/* Changes what the blocks of a rule come to; nothing without a rule. */
static void shift(struct spw_pool *pool, uint8_t rule, int64_t live, int64_t host)
{
    struct spw_tally *tally = tally_of(pool, rule);

    if (tally != NULL) {
        spw_lock(&pool->lock);
        move(tally, live, host);
        spw_unlock(&pool->lock);
    }
}

void spw_pool_tally_remove(struct spw_pool *pool, uint8_t rule, uint64_t bytes, bool host)
{
    shift(pool, rule, -(int64_t)bytes, host ? -(int64_t)bytes : 0);
}

void spw_pool_tally_return(struct spw_pool *pool, uint8_t rule, uint64_t bytes)
{
    shift(pool, rule, 0, -(int64_t)bytes);
}
