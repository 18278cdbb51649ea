#include "pool/alloc/lazy.h"

#include "pool/alloc/chunks.h"
#include "pool/alloc/state.h"
#include "pool/alloc/usage.h"
#include "pool/space/heaps.h"
#include "pool/space/lost.h"

struct spw_extent *spw_pool_lazy_begin(struct spw_pool *pool, struct spw_extent *claim)
{
    struct spw_extent *block =
        spw_pool_space_finish_claim(&pool->space, claim, claim->address, claim->bytes);

    pool->figures.lazy_count++;
    atomic_fetch_add(pool->backing.to_commit, 1);
    return block;
}

/* Subtracts one from the counts of lazy blocks, because a block gets memory or is freed. */
static void count_down(struct spw_pool *pool)
{
    pool->figures.lazy_count--;
    atomic_fetch_sub(pool->backing.to_commit, 1);
}

void spw_pool_lazy_free(struct spw_pool *pool, struct spw_extent *block)
{
    uint64_t counted = spw_pool_extent_held(block);

    pool->figures.lazy_bytes -= counted;
    if (block->uncounted) {
        block->uncounted = false;
        pool->figures.uncounted_bytes -= spw_pool_extent_held(block);
    }
    count_down(pool);
    spw_pool_space_free_unbacked(&pool->space, block);
}

void spw_pool_lazy_abandon(struct spw_pool *pool)
{
    while (pool->figures.lazy_count > 0) {
        count_down(pool);
    }
}

static struct spw_extent *first_lazy(const struct spw_space *space)
{
    struct spw_extent *e = spw_pool_heaps_first_large(space->heaps);

    while (e != NULL && !spw_pool_extent_is_lazy(e)) {
        e = spw_pool_heaps_next_large(space->heaps, e);
    }
    return e;
}

/* Makes an uncounted block a counted one. */
static void count(struct spw_pool *pool, struct spw_extent *block)
{
    uint64_t bytes;

    block->uncounted = false;
    bytes = spw_pool_extent_held(block);
    pool->figures.uncounted_bytes -= bytes;
    pool->figures.own_live_bytes += bytes;
    pool->figures.lazy_bytes += bytes;
    spw_pool_count_live(pool, (int64_t)bytes, block->ordered, block->site);
    if (pool->layout.records != NULL && block->heap == SPW_HEAP_LARGE) {
        spw_pool_layout_record(&pool->layout, block);
    }
}

/* Backs a block with spare chunks. The unused end of its last granule becomes free. */
static enum spw_err back(struct spw_pool *pool, struct spw_extent *block)
{
    uint64_t held;
    enum spw_err err;

    if (!spw_pool_space_can_cut(&pool->space)) {
        return SPW_E_METADATA_NOMEM;
    }
    err = spw_pool_backing_fill(&pool->backing, block->address, spw_pool_extent_end(block),
                                /* host */ 0);
    if (err != SPW_OK) {
        return err;
    }
    if (block->uncounted) {
        count(pool, block);
    }
    held = spw_pool_extent_held(block);
    block->lazy = false;
    pool->figures.lazy_bytes -= held;
    count_down(pool);
    spw_pool_space_cut_tail(&pool->space, block, held);
    return SPW_OK;
}

static bool has_chunks(const struct spw_stock *stock, size_t count, bool spilling)
{
    size_t host = spilling ? stock->tiers[SPW_TIER_HOST].spare : 0;

    return stock->tiers[SPW_TIER_DEVICE].spare + host >= count;
}

enum spw_err spw_pool_commit(struct spw_pool *pool, bool spilling)
{
    struct spw_extent *block;
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    if (pool->backing.lost > 0) {
        (void)spw_pool_lost_remap(&pool->space);
    }
    while (err == SPW_OK && pool->figures.lazy_count > 0 &&
           (block = first_lazy(&pool->space)) != NULL) {
        size_t missing =
            spw_pool_backing_missing(&pool->backing, block->address, spw_pool_extent_end(block));

        /* spw_pool_chunks_provide may release the lock. Another thread may then free the block. */
        err = has_chunks(&pool->backing.stock, missing, spilling)
                  ? back(pool, block)
                  : spw_pool_chunks_provide(pool, missing, spilling);
    }
    spw_unlock(&pool->lock);
    return err;
}
