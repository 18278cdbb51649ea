#include "pool/space/lost.h"

#include "pool/memory/stock.h"
#include "pool/space/space.h"

void spw_pool_lost_announce(struct spw_backing *backing)
{
    bool lost = backing->lost > 0;

    if (lost != backing->lost_announced && backing->to_commit != NULL) {
        backing->lost_announced = lost;
        (void)(lost ? atomic_fetch_add(backing->to_commit, 1)
                    : atomic_fetch_sub(backing->to_commit, 1));
    }
}

void spw_pool_lost_abandon(struct spw_backing *backing)
{
    if (backing->lost_announced) {
        backing->lost_announced = false;
        atomic_fetch_sub(backing->to_commit, 1);
    }
}

/* Maps the chunk that begins at granule `index`, and gives access. */
static void remap_chunk(struct spw_backing *backing, size_t index)
{
    const struct spw_granule *granule = &backing->granules[index];
    uint64_t bytes = backing->granule_bytes << granule->order;
    uint64_t address = spw_pool_backing_address(backing, index);

    if (granule->lost == SPW_LOST_MAPPING) {
        if (backing->vm->ops->map(backing->vm, address, bytes, granule->chunk - 1) != SPW_OK) {
            return;
        }
        spw_pool_backing_mark_lost(backing, index, SPW_LOST_ACCESS);
    }
    if (spw_pool_backing_set_access(backing, address, bytes, bytes) == SPW_OK) {
        spw_pool_backing_mark_lost(backing, index, SPW_LOST_NOTHING);
    }
}

size_t spw_pool_lost_first(const struct spw_backing *backing)
{
    size_t index = 0;

    while (backing->granules[index].lost == SPW_LOST_NOTHING) {
        index++;
    }
    return index;
}

bool spw_pool_lost_remap(struct spw_space *space)
{
    size_t before = space->backing->lost, index = 0;

    /* The driver may need memory for its page tables. */
    (void)spw_pool_stock_release(&space->backing->stock, SPW_TIER_DEVICE, SIZE_MAX);
    for (size_t left = before; left > 0; index++) {
        const struct spw_granule *granule = &space->backing->granules[index];

        if (granule->lost != SPW_LOST_NOTHING) {
            left -= spw_pool_stock_size(granule->order);
            remap_chunk(space->backing, index);
            index += spw_pool_stock_size(granule->order) - 1;
        }
    }
    if (space->backing->lost < before) {
        spw_pool_space_reinstate(space);
    }
    spw_pool_lost_announce(space->backing);
    return space->backing->lost == 0;
}
