/* The exported chunks of a pool, and their end.
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

enum { SPW_EXPORT_GRANULES = SPW_MOVE_GRANULES }; /* the most in one step of an export */

/* One new chunk of an export. */
struct spw_export_piece {
    size_t granule, count; /* first granule, and number of granules */
    uint64_t chunk;
    uint64_t alias; /* its second address */
    enum spw_tier tier;
    enum spw_lost lost; /* the lost part of its mapping */
    bool own;           /* under the block, so exportable */
};

/* The step of an export under way. */
struct spw_export {
    size_t first, last; /* granules whose chunks are replaced; equal: no step */
    size_t count;
    struct spw_export_piece pieces[SPW_EXPORT_GRANULES]; /* by rising granule */
    void *fences[SPW_TIER_COUNT];                        /* of the copies; NULL: none under way */
    void *drained; /* fence behind all work of the device; NULL: none */
    bool committed;
    bool over; /* ended, but its copies are still under way */
};

/* The first granules of the exported chunks. */
struct spw_exported {
    struct spw_space *space;
    size_t *granules;
    size_t count, capacity;
    bool ending; /* a block on an exported chunk was freed */
    struct spw_export step;
};

/* Makes sure that `more` chunks can be added. False when the process has no memory. */
bool spw_pool_exported_reserve(struct spw_exported *exported, size_t more);

/* Ends the step of an export under way, if any; all device work must be complete. */
void spw_pool_export_drop(struct spw_exported *exported);

/* Releases the exported chunks that have no block and no pending work. */
void spw_pool_exported_release(struct spw_exported *exported);
