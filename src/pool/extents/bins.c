#include "pool/extents/bins.h"

#include <stddef.h>

enum { PART_BITS = 5, SCAN_MOST = 24 };

struct position {
    unsigned level, part;
};

static struct position bin_of(uint64_t bytes)
{
    uint64_t units = bytes / SPW_UNIT_BYTES;
    unsigned high;

    if (units < SPW_BIN_PARTS) {
        return (struct position){0, (unsigned)units};
    }
    high = 63 - (unsigned)__builtin_clzll(units);
    return (struct position){high - PART_BITS + 1,
                             (unsigned)(units >> (high - PART_BITS)) & (SPW_BIN_PARTS - 1)};
}

void spw_pool_bins_insert(struct spw_bins *bins, struct spw_extent *extent)
{
    struct position at = bin_of(extent->bytes);
    struct spw_extent **head = &bins->heads[at.level][at.part];

    extent->bin.prev = NULL;
    extent->bin.next = *head;
    if (*head != NULL) {
        (*head)->bin.prev = extent;
    }
    *head = extent;
    bins->parts[at.level] |= 1u << at.part;
    bins->levels |= 1ull << at.level;
}

void spw_pool_bins_remove(struct spw_bins *bins, struct spw_extent *extent)
{
    struct position at = bin_of(extent->bytes);

    if (extent->bin.next != NULL) {
        extent->bin.next->bin.prev = extent->bin.prev;
    }
    if (extent->bin.prev != NULL) {
        extent->bin.prev->bin.next = extent->bin.next;
        return;
    }
    bins->heads[at.level][at.part] = extent->bin.next;
    if (extent->bin.next == NULL) {
        bins->parts[at.level] &= ~(1u << at.part);
        if (bins->parts[at.level] == 0) {
            bins->levels &= ~(1ull << at.level);
        }
    }
}

void spw_pool_bins_resize(struct spw_bins *bins, struct spw_extent *extent, uint64_t bytes)
{
    struct position from = bin_of(extent->bytes), to = bin_of(bytes);

    if (from.level == to.level && from.part == to.part) {
        extent->bytes = bytes;
        return;
    }
    spw_pool_bins_remove(bins, extent);
    extent->bytes = bytes;
    spw_pool_bins_insert(bins, extent);
}

static struct spw_extent *best_in_bin(struct spw_extent *head, uint64_t bytes)
{
    struct spw_extent *best = NULL;
    unsigned seen = 0;

    for (struct spw_extent *e = head; e != NULL && seen < SCAN_MOST; e = e->bin.next, seen++) {
        if (e->bytes < bytes) {
            continue;
        }
        if (best == NULL || e->bytes < best->bytes ||
            (e->bytes == best->bytes && e->address < best->address)) {
            best = e;
        }
    }
    return best;
}

struct spw_extent *spw_pool_bins_best(const struct spw_bins *bins, uint64_t bytes)
{
    struct position at = bin_of(bytes);
    struct spw_extent *found;
    uint32_t parts;
    uint64_t levels;

    if (bins->levels >> at.level == 0) {
        return NULL;
    }
    found = best_in_bin(bins->heads[at.level][at.part], bytes);
    if (found != NULL) {
        return found;
    }
    parts = bins->parts[at.level] & ~((2u << at.part) - 1);
    if (parts == 0) {
        levels = bins->levels & ~((2ull << at.level) - 1);
        if (levels == 0) {
            return NULL;
        }
        at.level = (unsigned)__builtin_ctzll(levels);
        parts = bins->parts[at.level];
    }
    return best_in_bin(bins->heads[at.level][__builtin_ctz(parts)], bytes);
}

uint64_t spw_pool_bins_largest(const struct spw_bins *bins)
{
    uint64_t largest = 0;
    unsigned level;

    if (bins->levels == 0) {
        return 0;
    }
    level = 63 - (unsigned)__builtin_clzll(bins->levels);
    for (struct spw_extent *e =
             bins->heads[level][31 - (unsigned)__builtin_clz(bins->parts[level])];
         e != NULL; e = e->bin.next) {
        largest = e->bytes > largest ? e->bytes : largest;
    }
    return largest;
}
