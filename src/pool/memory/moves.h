/* The moves in progress: the granules that they pin, and the chunks that they hold until they end.
 *
 * The caller holds the pool's lock, or is the only user of the pool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/attributes.h"
#include "pool/extents/extent.h"
#include "pool/memory/backing.h"
#include "pool/move.h"
#include "pool/vm_ops.h"

/* One new chunk of a move. It may replace several neighbouring chunks. */
struct spw_move_item {
    size_t granule; /* index of the first granule */
    size_t count;   /* number of granules in the chunk */
    size_t urgency; /* 0 is the most urgent */
    uint64_t chunk; /* the new chunk */
    uint64_t alias; /* the second address of the new chunk */
    uint64_t hash;  /* hash of the content, if the content is verified */
    enum spw_tier to;
    bool left_out; /* will not be committed, for example because its block was fixed */
    bool detached; /* its old chunks were away when the copies began */
    bool mapped;   /* the new chunk is in place, but has no access yet */
    bool committed;
};

/* A move in progress. */
struct spw_move {
    size_t count;                                  /* number of items; 0: not in progress */
    size_t granules;                               /* number of granules in all items */
    struct spw_move_item items[SPW_MOVE_GRANULES]; /* in ascending order of granules */
    size_t parts;                /* number of parts of the last copies; 0: nothing was copied yet */
    size_t ends[SPW_MOVE_PARTS]; /* index of the item behind each part */
    void *fences[SPW_MOVE_PARTS][SPW_TIER_COUNT]; /* fences of the copies; NULL: no copy is in
                                                     progress */
    void *drained; /* fence behind all work of the device; NULL: none */
    bool over;     /* ended, but its copies are still in progress */
};

struct spw_moves {
    struct spw_move each[SPW_MOVES];
    uint64_t fixed_id; /* blocks with an id up to this one are not moved */
    uint8_t overruled; /* bits of enum spw_fixed_reason that fix no block now: 0 or
                          SPW_FIXED_BY_GRAPH */
    struct spw_vm_copy copies[SPW_MOVE_GRANULES]; /* scratch memory, too large for the stack */
};

/* Returns true if a block has a reason to stay in its place, even if that reason is overruled
 * now. */
static inline bool spw_pool_is_fixed(const struct spw_extent *block)
{
    return (block->fixed & ~SPW_NAMED_BY_GRAPH) != 0;
}

/* Returns true if the granules under an extent may be moved. */
static inline bool spw_pool_can_move(const struct spw_moves *moves, const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_BLOCK
               ? extent->id > moves->fixed_id &&
                     (extent->fixed & ~(moves->overruled | SPW_NAMED_BY_GRAPH)) == 0
               : extent->kind != SPW_EXTENT_CLAIM;
}

/* Return the address of an item, and its size in bytes. */
static inline uint64_t spw_pool_move_address(const struct spw_backing *backing,
                                             const struct spw_move_item *item)
{
    return spw_pool_backing_address(backing, item->granule);
}

static inline uint64_t spw_pool_move_bytes(const struct spw_backing *backing,
                                           const struct spw_move_item *item)
{
    return item->count * backing->granule_bytes;
}

/* Returns the index of the first item of a part. */
static inline size_t spw_pool_move_part_begin(const struct spw_move *move, size_t part)
{
    return part > 0 ? move->ends[part - 1] : 0;
}

/* Returns true if the second item is directly behind the first. */
static inline bool spw_pool_move_adjoins(const struct spw_move_item *first,
                                         const struct spw_move_item *second)
{
    return second->granule == first->granule + first->count;
}

/* Returns the number of items in the run that begins at `first`. The items of a run are neighbours,
 * and have the same size, the same new tier, and the same `left_out` and `committed`. */
static inline size_t spw_pool_move_run(const struct spw_move *move, size_t first)
{
    size_t next = first + 1;

    while (next < move->count &&
           spw_pool_move_adjoins(&move->items[next - 1], &move->items[next]) &&
           move->items[next].count == move->items[first].count &&
           move->items[next].to == move->items[first].to &&
           move->items[next].left_out == move->items[first].left_out &&
           move->items[next].committed == move->items[first].committed) {
        next++;
    }
    return next - first;
}

/* Called for a block that is now fixed. Removes its granules from the moves in progress, and maps
 * its chunks again if they are away. */
void spw_pool_keep_in_place(struct spw_backing *backing, const struct spw_extent *block);

/* Puts the chunks of granules [first, last) back that are away, and removes them from the moves
 * that are copying them. The range consists of whole chunks. */
void spw_pool_moves_attach(struct spw_backing *backing, size_t first, size_t last);

/* ---- the end of a move ---- */

/* Queries a fence of a move. NULL counts as complete. If the fence is complete, drops it and sets
 * *fence to NULL. */
enum spw_err spw_pool_move_query(struct spw_vm *vm, void **fence);

/* Query the copies of one part, and of all parts. */
enum spw_err spw_pool_move_query_part(struct spw_vm *vm, struct spw_move *move, size_t part);
enum spw_err spw_pool_move_query_all(struct spw_vm *vm, struct spw_move *move);

/* Gives the chunks and pins of a move back if it is over and its copies are done. Returns
 * SPW_E_AGAIN if the copies are not done. The second function does this for every move. */
enum spw_err spw_pool_move_end_if_finished(struct spw_backing *backing, struct spw_move *move);
void spw_pool_move_end_finished(struct spw_backing *backing);

/* Gives the chunks and pins of every move back, whatever its state. All device work must be
 * complete. */
void spw_pool_move_drop_all(struct spw_backing *backing);
