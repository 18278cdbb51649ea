#include "pool/attributes.h"

#include "pool/alloc/query.h"
#include "pool/alloc/state.h"
#include "pool/space/lost.h"

static void set_block(struct spw_extent *block, const struct spw_block_attributes *attributes)
{
    block->fixed = (uint8_t)((block->fixed & ~attributes->unfix) | attributes->fix);
    if (attributes->prioritize) {
        block->priority = attributes->priority;
    }
}

static void set_and_keep(struct spw_backing *backing, struct spw_extent *block,
                         const struct spw_block_attributes *attributes)
{
    set_block(block, attributes);
    if (spw_pool_is_fixed(block)) {
        spw_pool_keep_in_place(backing, block);
        spw_pool_lost_announce(backing);
    }
}

bool spw_pool_set_attributes_of(struct spw_pool *pool, uint64_t address,
                                const struct spw_block_attributes *attributes)
{
    struct spw_extent *block;

    spw_lock(&pool->lock);
    block = spw_pool_address_map_get(&pool->blocks, address);
    if (block != NULL) {
        set_and_keep(&pool->backing, block, attributes);
    }
    spw_unlock(&pool->lock);
    return block != NULL;
}

size_t spw_pool_set_attributes(struct spw_pool *pool, uint64_t address, uint64_t bytes,
                               const struct spw_block_attributes *attributes)
{
    struct spw_extent *extent = NULL;
    size_t count = 0;

    if (!spw_pool_owns(pool, address) || bytes == 0 || bytes > pool->backing.bytes) {
        return 0;
    }
    spw_lock(&pool->lock);
    extent = spw_pool_extent(pool, address);
    for (; extent != NULL && extent->address < address + bytes; extent = extent->next) {
        if (extent->kind == SPW_EXTENT_BLOCK) {
            set_and_keep(&pool->backing, extent, attributes);
            count++;
        }
    }
    spw_unlock(&pool->lock);
    return count;
}
