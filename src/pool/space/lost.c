#include "pool/space/lost.h"

#include "pool/alloc/state.h"
#include "pool/memory/stock.h"

void spw_pool_lost_announce(struct spw_pool *pool)
{
    bool lost = pool->backing.lost > 0;

    if (lost != pool->lost_announced && pool->config.to_commit != NULL) {
        pool->lost_announced = lost;
        (void)(lost ? atomic_fetch_add(pool->config.to_commit, 1)
                    : atomic_fetch_sub(pool->config.to_commit, 1));
    }
}

void spw_pool_lost_abandon(struct spw_pool *pool)
{
    if (pool->lost_announced) {
        pool->lost_announced = false;
        atomic_fetch_sub(pool->config.to_commit, 1);
    }
}

/* Maps the chunk that begins at granule `index`, and gives access. */
static void remap_chunk(struct spw_pool *pool, size_t index)
{
    const struct spw_granule *granule = &pool->backing.granules[index];
    uint64_t bytes = pool->backing.granule_bytes << granule->order;
    uint64_t address = pool->backing.base + index * pool->backing.granule_bytes;

    if (granule->lost == SPW_LOST_MAPPING) {
        if (pool->vm->ops->map(pool->vm, address, bytes, granule->chunk - 1) != SPW_OK) {
            return;
        }
        spw_pool_backing_mark_lost(&pool->backing, index, SPW_LOST_ACCESS);
    }
    if (pool->vm->ops->set_access(pool->vm, address, bytes, bytes) == SPW_OK) {
        spw_pool_backing_mark_lost(&pool->backing, index, SPW_LOST_NOTHING);
    }
}

size_t spw_pool_lost_first(const struct spw_pool *pool)
{
    size_t index = 0;

    while (pool->backing.granules[index].lost == SPW_LOST_NOTHING) {
        index++;
    }
    return index;
}

bool spw_pool_lost_remap(struct spw_pool *pool)
{
    size_t before = pool->backing.lost, index = 0;

    /* The driver may need memory for its tables. */
    (void)spw_pool_stock_release(&pool->backing.stock, SPW_TIER_DEVICE, SIZE_MAX);
    for (size_t left = before; left > 0; index++) {
        const struct spw_granule *granule = &pool->backing.granules[index];

        if (granule->lost != SPW_LOST_NOTHING) {
            left -= spw_pool_stock_size(granule->order);
            remap_chunk(pool, index);
            index += spw_pool_stock_size(granule->order) - 1;
        }
    }
    if (pool->backing.lost < before) {
        spw_pool_space_reinstate(&pool->space);
    }
    spw_pool_lost_announce(pool);
    return pool->backing.lost == 0;
}
