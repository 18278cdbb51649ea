#include "pool/extents/shelf.h"

#include <stdlib.h>

enum { FEW = 8 };

static void link_in(struct spw_shelf *shelf, struct spw_extent *extent)
{
    extent->bin.prev = NULL;
    extent->bin.next = shelf->list;
    if (shelf->list != NULL) {
        shelf->list->bin.prev = extent;
    }
    shelf->list = extent;
    shelf->count++;
}

void spw_pool_shelf_remove_few(struct spw_shelf *shelf, struct spw_extent *extent)
{
    if (extent->bin.next != NULL) {
        extent->bin.next->bin.prev = extent->bin.prev;
    }
    if (extent->bin.prev != NULL) {
        extent->bin.prev->bin.next = extent->bin.next;
    } else {
        shelf->list = extent->bin.next;
    }
    shelf->count--;
}

void spw_pool_shelf_insert_few(struct spw_shelf *shelf, struct spw_extent *extent)
{
    link_in(shelf, extent);
    if (shelf->count <= FEW) {
        return;
    }
    shelf->bins = calloc(1, sizeof(*shelf->bins));
    while (shelf->bins != NULL && shelf->list != NULL) {
        struct spw_extent *first = shelf->list;

        spw_pool_shelf_remove_few(shelf, first);
        spw_pool_bins_insert(shelf->bins, first);
    }
}

struct spw_extent *spw_pool_shelf_best_few(const struct spw_shelf *shelf, uint64_t bytes)
{
    struct spw_extent *best = NULL;

    for (struct spw_extent *e = shelf->list; e != NULL; e = e->bin.next) {
        if (e->bytes >= bytes && (best == NULL || e->bytes < best->bytes ||
                                  (e->bytes == best->bytes && e->address < best->address))) {
            best = e;
        }
    }
    return best;
}

uint64_t spw_pool_shelf_largest(const struct spw_shelf *shelf)
{
    uint64_t largest = shelf->bins != NULL ? spw_pool_bins_largest(shelf->bins) : 0;

    for (const struct spw_extent *e = shelf->list; e != NULL; e = e->bin.next) {
        largest = e->bytes > largest ? e->bytes : largest;
    }
    return largest;
}

size_t spw_pool_shelf_count(const struct spw_shelf *shelf)
{
    size_t count = shelf->count;

    for (int level = 0; shelf->bins != NULL && level < SPW_BIN_LEVELS; level++) {
        for (int part = 0; part < SPW_BIN_PARTS; part++) {
            for (const struct spw_extent *e = shelf->bins->heads[level][part]; e != NULL;
                 e = e->bin.next) {
                count++;
            }
        }
    }
    return count;
}

void spw_pool_shelf_trim(struct spw_shelf *shelf)
{
    if (shelf->bins != NULL && shelf->bins->levels == 0) {
        free(shelf->bins);
        shelf->bins = NULL;
    }
}
