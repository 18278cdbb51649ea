/* The heaps of an arena: finding extents by address, and in address order. Not thread-safe: the
 * caller holds the pool's lock. */
#pragma once

#include <stdint.h>

#include "pool/backing.h"
#include "pool/extent.h"

/* Returns the extent that contains `address`; NULL when there is none. `backing` is that of the
 * arena, whose granules remember where blocks begin. */
struct spw_extent *spw_pool_heaps_find(const struct spw_heap heaps[SPW_HEAP_COUNT],
                                       const struct spw_backing *backing, uint64_t address);

/* Iterate over the extents of movable blocks, by rising address: those of the heap of large blocks
 * and of the numbered heaps. Blocks in the host's own heap stay there. NULL at the end. */
struct spw_extent *spw_pool_heaps_first_large(const struct spw_heap heaps[SPW_HEAP_COUNT]);
struct spw_extent *spw_pool_heaps_next_large(const struct spw_heap heaps[SPW_HEAP_COUNT],
                                             const struct spw_extent *extent);
