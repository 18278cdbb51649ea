/* Shelves: the free extents of one queue in one heap, for best fit.
 *
 * A few extents are in a list, which is searched completely. More extents are put into bins
 * (bins.h), which occupy 10 KiB. If there is no memory for bins, the list grows. A shelf of zero
 * bytes is empty and ready for use. Not thread-safe: the caller holds the pool's lock. */
#pragma once

#include <stddef.h>

#include "pool/extents/bins.h"

struct spw_shelf {
    struct spw_bins *bins;   /* NULL: the extents are in the list */
    struct spw_extent *list; /* linked by the member `bin` */
    uint32_t count;          /* number of extents in the list */
};

/* The slow halves of the functions below, for a list. */
void spw_pool_shelf_insert_few(struct spw_shelf *shelf, struct spw_extent *extent);
void spw_pool_shelf_remove_few(struct spw_shelf *shelf, struct spw_extent *extent);
struct spw_extent *spw_pool_shelf_best_few(const struct spw_shelf *shelf, uint64_t bytes);

/* Like the functions of the same names in bins.h. */
static inline void spw_pool_shelf_insert(struct spw_shelf *shelf, struct spw_extent *extent)
{
    if (shelf->bins != NULL) {
        spw_pool_bins_insert(shelf->bins, extent);
    } else {
        spw_pool_shelf_insert_few(shelf, extent);
    }
}

static inline void spw_pool_shelf_remove(struct spw_shelf *shelf, struct spw_extent *extent)
{
    if (shelf->bins != NULL) {
        spw_pool_bins_remove(shelf->bins, extent);
    } else {
        spw_pool_shelf_remove_few(shelf, extent);
    }
}

static inline void spw_pool_shelf_resize(struct spw_shelf *shelf, struct spw_extent *extent,
                                         uint64_t bytes)
{
    if (shelf->bins != NULL) {
        spw_pool_bins_resize(shelf->bins, extent, bytes);
    } else {
        extent->bytes = bytes;
    }
}

static inline struct spw_extent *spw_pool_shelf_best(const struct spw_shelf *shelf, uint64_t bytes)
{
    if (shelf->bins != NULL) {
        return spw_pool_bins_best(shelf->bins, bytes);
    }
    return shelf->list == NULL ? NULL : spw_pool_shelf_best_few(shelf, bytes);
}

/* Returns the size of the largest extent; 0 if the shelf is empty. */
uint64_t spw_pool_shelf_largest(const struct spw_shelf *shelf);

/* Counts the extents, and returns their number. */
size_t spw_pool_shelf_count(const struct spw_shelf *shelf);

/* Frees the bins if they are empty. */
void spw_pool_shelf_trim(struct spw_shelf *shelf);
