#include "pool/memory/old_chunks.h"

#include "pool/alloc/state.h"

static uint64_t address_of(const struct spw_pool *pool, size_t granule)
{
    return pool->backing.base + granule * pool->config.granule_bytes;
}

size_t spw_pool_old_chunks_unmap(struct spw_pool *pool, size_t first, size_t last)
{
    uint64_t granule = pool->config.granule_bytes;

    for (size_t end; first < last; first = end) {
        uint64_t chunk_bytes = granule << pool->backing.granules[first].order, bytes, done;

        end = spw_pool_backing_end_of_size(&pool->backing, first, last);
        done = bytes = (end - first) * granule;
        if (pool->vm->ops->unmap(pool->vm, address_of(pool, first), bytes, chunk_bytes, &done) !=
            SPW_OK) {
            return first + (size_t)(done / granule);
        }
    }
    return last;
}

/* Maps the chunk that begins at a granule, and gives access. */
static void put_back_chunk(struct spw_pool *pool, size_t granule)
{
    const struct spw_granule *old = &pool->backing.granules[granule];
    uint64_t address = address_of(pool, granule), bytes = pool->config.granule_bytes << old->order;

    if (pool->vm->ops->map(pool->vm, address, bytes, old->chunk - 1) != SPW_OK &&
        pool->vm->ops->map(pool->vm, address, bytes, old->chunk - 1) != SPW_OK) {
        spw_pool_backing_mark_lost(&pool->backing, granule, SPW_LOST_MAPPING);
    } else if (pool->vm->ops->set_access(pool->vm, address, bytes, bytes) != SPW_OK &&
               pool->vm->ops->set_access(pool->vm, address, bytes, bytes) != SPW_OK) {
        spw_pool_backing_mark_lost(&pool->backing, granule, SPW_LOST_ACCESS);
    }
}

void spw_pool_old_chunks_put_back(struct spw_pool *pool, size_t first, size_t last)
{
    while (first < last) {
        put_back_chunk(pool, first);
        first = spw_pool_backing_chunk_end(&pool->backing, first);
    }
}
