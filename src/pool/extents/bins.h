/* Bins: free extents indexed by size, for best fit.
 *
 * There are two levels of bins: powers of two, each divided into 32 equal parts. Each level has a
 * bitmap, so the smallest bin that can serve a size is found in constant time. In that bin, the
 * best of the first entries is chosen. Not thread-safe: the caller holds the pool's lock. */
#pragma once

#include <stdint.h>

#include "pool/extents/extent.h"

/* Sizes are multiples of the unit. This number of levels is enough for sizes below 1 PiB. */
enum { SPW_UNIT_BYTES = 512, SPW_BIN_LEVELS = 37, SPW_BIN_PARTS = 32 };

struct spw_bins {
    uint64_t levels;
    uint32_t parts[SPW_BIN_LEVELS];
    struct spw_extent *heads[SPW_BIN_LEVELS][SPW_BIN_PARTS];
};

/* Add and remove a free extent. Its size must not change in between. */
void spw_pool_bins_insert(struct spw_bins *bins, struct spw_extent *extent);
void spw_pool_bins_remove(struct spw_bins *bins, struct spw_extent *extent);

/* Changes the size of an extent that is in the bins. */
void spw_pool_bins_resize(struct spw_bins *bins, struct spw_extent *extent, uint64_t bytes);

/* Returns the extent of at least `bytes` that wastes least; NULL if there is none. The extent stays
 * in the bins. */
struct spw_extent *spw_pool_bins_best(const struct spw_bins *bins, uint64_t bytes);

/* Returns the size of the largest extent; 0 if the bins are empty. */
uint64_t spw_pool_bins_largest(const struct spw_bins *bins);
