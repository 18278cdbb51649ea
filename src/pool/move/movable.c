#include "pool/move/movable.h"

#include "pool/alloc/state.h"

/* Returns true if an extent allows its granules to be moved to a tier. */
static bool agrees(const struct spw_moves *moves, const struct spw_extent *extent, enum spw_tier to)
{
    return spw_pool_can_move(moves, extent) &&
           (to == SPW_TIER_HOST || extent->kind != SPW_EXTENT_BLOCK || extent->placed == 0);
}

/* Returns true if all extents in [address, end) allow the move. `block` is one of them. */
static bool all_agree(const struct spw_moves *moves, const struct spw_extent *block,
                      uint64_t address, uint64_t end, enum spw_tier to)
{
    const struct spw_extent *e = block;

    while (e->prev != NULL && e->address > address) {
        e = e->prev;
    }
    while (e != NULL && e->address < end && agrees(moves, e, to)) {
        e = e->next;
    }
    return e == NULL || e->address >= end;
}

/* Returns true if no granule of [first, last) is broken or part of a move. */
static bool is_whole(const struct spw_backing *backing, size_t first, size_t last)
{
    while (first < last && !backing->granules[first].broken && !backing->granules[first].pinned) {
        first++;
    }
    return first == last;
}

bool spw_pool_movable_chunk(const struct spw_backing *backing, const struct spw_extent *block,
                            size_t first, size_t last, enum spw_tier to)
{
    uint64_t address = spw_pool_backing_address(backing, first);
    uint64_t end = spw_pool_backing_address(backing, last);

    return is_whole(backing, first, last) && all_agree(backing->moves, block, address, end, to);
}
