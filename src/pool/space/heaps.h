/* The heaps of an arena: finds extents by address, and in address order. Not thread-safe: the
 * caller holds the pool's lock. */
#pragma once

#include <stdint.h>

#include "pool/extents/extent.h"
#include "pool/memory/backing.h"

/* Returns the extent that contains `address`; NULL if there is none. `backing` is the arena's; its
 * granules store where blocks begin. */
struct spw_extent *spw_pool_heaps_find(const struct spw_heap heaps[SPW_HEAP_COUNT],
                                       const struct spw_backing *backing, uint64_t address);

/* Iterate, in ascending order of addresses, over the extents of the heaps whose blocks may move:
 * the heap of large blocks and the numbered heaps. NULL at the end. */
struct spw_extent *spw_pool_heaps_first_large(const struct spw_heap heaps[SPW_HEAP_COUNT]);
struct spw_extent *spw_pool_heaps_next_large(const struct spw_heap heaps[SPW_HEAP_COUNT],
                                             const struct spw_extent *extent);
