/* The exported chunks of a pool, and how they are released.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/memory/backing.h"
#include "pool/move.h"
#include "pool/space/space.h"
#include "pool/vm_ops.h"

enum { SPW_EXPORT_GRANULES = SPW_MOVE_GRANULES }; /* most granules in one step of an export */

/* One new chunk of an export. */
struct spw_export_piece {
    size_t granule, count; /* first granule, and number of granules */
    uint64_t chunk;
    uint64_t alias; /* the second address of the chunk */
    enum spw_tier tier;
    enum spw_lost lost; /* the part of its mapping that is lost */
    bool own;           /* under the block, and therefore exportable */
};

/* The current step of an export. */
struct spw_export {
    size_t first, last; /* range of the granules whose chunks are replaced; if empty, there is no
                           step */
    size_t count;
    struct spw_export_piece pieces[SPW_EXPORT_GRANULES]; /* in ascending order of granules */
    void *fences[SPW_TIER_COUNT];                        /* fences of the copies; NULL: no copy is
                                                            in progress */
    void *drained; /* fence behind all work of the device; NULL: none */
    bool committed;
    bool over; /* ended, but its copies are still in progress */
};

/* The exported chunks, each by its first granule. */
struct spw_exported {
    struct spw_space *space;
    size_t *granules;
    size_t count, capacity;
    bool ending; /* a block on an exported chunk was freed */
    struct spw_export step;
};

/* Makes sure that `more` chunks can be added. Returns false if the process has no memory. */
bool spw_pool_exported_reserve(struct spw_exported *exported, size_t more);

/* Ends the current step of an export, if there is one. All device work must be complete. */
void spw_pool_export_drop(struct spw_exported *exported);

/* Releases the exported chunks that have no block and no pending work. */
void spw_pool_exported_release(struct spw_exported *exported);
