#include "pool/memory/old_chunks.h"

#include "pool/memory/backing.h"

size_t spw_pool_old_chunks_unmap(struct spw_backing *backing, size_t first, size_t last)
{
    uint64_t granule = backing->granule_bytes;

    for (size_t end; first < last; first = end) {
        uint64_t chunk_bytes = granule << backing->granules[first].order, bytes, done;

        end = spw_pool_backing_end_of_size(backing, first, last);
        if (backing->granules[first].away) {
            continue;
        }
        done = bytes = (end - first) * granule;
        if (backing->vm->ops->unmap(backing->vm, spw_pool_backing_address(backing, first), bytes,
                                    chunk_bytes, &done) != SPW_OK) {
            return first + (size_t)(done / granule);
        }
    }
    return last;
}

/* Maps the chunk that begins at a granule, and gives access. */
static void put_back_chunk(struct spw_backing *backing, size_t granule)
{
    const struct spw_granule *old = &backing->granules[granule];
    uint64_t address = spw_pool_backing_address(backing, granule),
             bytes = backing->granule_bytes << old->order;

    if (backing->vm->ops->map(backing->vm, address, bytes, old->chunk - 1) != SPW_OK &&
        backing->vm->ops->map(backing->vm, address, bytes, old->chunk - 1) != SPW_OK) {
        spw_pool_backing_mark_lost(backing, granule, SPW_LOST_MAPPING);
    } else if (spw_pool_backing_set_access(backing, address, bytes, bytes) != SPW_OK &&
               spw_pool_backing_set_access(backing, address, bytes, bytes) != SPW_OK) {
        spw_pool_backing_mark_lost(backing, granule, SPW_LOST_ACCESS);
    }
}

void spw_pool_old_chunks_put_back(struct spw_backing *backing, size_t first, size_t last)
{
    while (first < last) {
        if (!backing->granules[first].away) {
            put_back_chunk(backing, first);
        }
        first = spw_pool_backing_chunk_end(backing, first);
    }
}
