#include "pool/alloc/query.h"

#include "pool/alloc/state.h"

bool spw_pool_owns(const struct spw_pool *pool, uint64_t address)
{
    return address - pool->backing.base < pool->backing.bytes ||
           spw_pool_slabs_own(&pool->slabs, address);
}

uint64_t spw_pool_run(struct spw_pool *pool, uint64_t address, uint64_t most)
{
    uint64_t left = pool->backing.base + pool->backing.bytes - address, run;

    /* Memory outside the arena is page-locked, so all of it is on the host. */
    if (address - pool->backing.base >= pool->backing.bytes) {
        return most;
    }
    spw_lock(&pool->lock);
    run = spw_pool_backing_run(&pool->backing, address, address + (most < left ? most : left));
    spw_unlock(&pool->lock);
    return run;
}

struct spw_extent *spw_pool_extent(const struct spw_pool *pool, uint64_t address)
{
    struct spw_extent *extent = spw_pool_address_map_get(&pool->blocks, address);

    if (extent == NULL) {
        extent = spw_pool_slabs_find(&pool->slabs, address);
    }
    return extent != NULL ? extent : spw_pool_space_find(&pool->space, address);
}

bool spw_pool_find(struct spw_pool *pool, uint64_t address, struct spw_block *ret_block)
{
    struct spw_extent *extent;
    bool found;

    if (!spw_pool_owns(pool, address)) {
        return false;
    }
    spw_lock(&pool->lock);
    extent = spw_pool_extent(pool, address);
    found = extent != NULL && extent->kind == SPW_EXTENT_BLOCK &&
            address < extent->address + extent->requested;
    if (found) {
        *ret_block = (struct spw_block){.address = extent->address,
                                        .bytes = extent->requested,
                                        .id = extent->id,
                                        .stream_id = extent->stream_id,
                                        .site = extent->site,
                                        .context = extent->context,
                                        .ordered = extent->ordered};
    }
    spw_unlock(&pool->lock);
    return found;
}

void spw_pool_each_free(struct spw_pool *pool,
                        void (*visit)(uint64_t address, uint64_t bytes, void *context),
                        void *context)
{
    spw_lock(&pool->lock);
    for (int i = 0; i < SPW_HEAP_COUNT; i++) {
        const struct spw_extent *extent = pool->space.heaps[i].first;

        for (; extent != NULL; extent = extent->next) {
            if (extent->kind == SPW_EXTENT_FREE) {
                visit(extent->address, extent->bytes, context);
            }
        }
    }
    spw_unlock(&pool->lock);
}

enum spw_err spw_pool_refresh_access(struct spw_pool *pool)
{
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    for (int i = 0; i < SPW_HEAP_COUNT && err == SPW_OK; i++) {
        const struct spw_heap *heap = &pool->space.heaps[i];

        err = spw_pool_backing_refresh_access(&pool->backing, heap->base, heap->frontier);
    }
    spw_unlock(&pool->lock);
    return err;
}
