/* Bins: free extents indexed by size, for best fit.
 *
 * Two levels of bins (powers of two, each in 32 equal parts) with a bitmap each, so that the
 * smallest bin that can serve a size is found in constant time. Inside a bin the best of its first
 * entries is chosen. Not thread-safe: the caller holds the pool's lock. */
#pragma once

#include <stdint.h>

#include "pool/extents/extent.h"

/* Sizes are multiples of the unit, up to SPW_BIN_LEVELS powers of two of it (1 PiB). */
enum { SPW_UNIT_BYTES = 512, SPW_BIN_LEVELS = 37, SPW_BIN_PARTS = 32 };

struct spw_bins {
    uint64_t levels;
    uint32_t parts[SPW_BIN_LEVELS];
    struct spw_extent *heads[SPW_BIN_LEVELS][SPW_BIN_PARTS];
};

/* Add and remove a free extent, whose size must not change in between. */
void spw_pool_bins_insert(struct spw_bins *bins, struct spw_extent *extent);
void spw_pool_bins_remove(struct spw_bins *bins, struct spw_extent *extent);

/* Changes the size of an extent that is in the bins. */
void spw_pool_bins_resize(struct spw_bins *bins, struct spw_extent *extent, uint64_t bytes);

/* Returns the extent of at least `bytes` that wastes least; NULL when there is none. The extent
 * stays in the bins. */
struct spw_extent *spw_pool_bins_best(const struct spw_bins *bins, uint64_t bytes);

/* Returns the bytes of the largest extent; 0 when the bins are empty. */
uint64_t spw_pool_bins_largest(const struct spw_bins *bins);
