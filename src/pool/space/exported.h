/* The exported chunks of a pool, and their end.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct spw_pool;

/* The first granules of the exported chunks. */
struct spw_exported {
    size_t *granules;
    size_t count, capacity;
    bool ending; /* a block on one of them was freed */
};

/* Makes sure that `more` chunks can be added. False when the process has no memory. */
bool spw_pool_exported_reserve(struct spw_exported *exported, size_t more);

/* Ends the step of an export under way, if any; all device work must be complete. */
void spw_pool_export_drop(struct spw_pool *pool);

/* Releases exported chunks without a block whose work is complete. */
void spw_pool_exported_release(struct spw_pool *pool);
