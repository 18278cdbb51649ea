/* Sorted map of disjoint address ranges, O(log n): find by address, walk in order, first fit.
 *
 * The nodes are embedded in the caller's objects; the map allocates nothing and owns nothing. It is
 * a treap. Each node also has the largest size in its subtree, so one descent finds the lowest
 * range of at least a given size.
 *
 * Locking: none of its own. Callers hold the simulator's lock (core/lock.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sim_range {
    uint64_t start;
    uint64_t size; /* never 0 while in a map */
    struct sim_range *left;
    struct sim_range *right;
    uint64_t largest;  /* largest size in this node's subtree */
    uint32_t priority; /* heap order: no child has a higher one */
};

struct sim_rangemap {
    struct sim_range *root;
    size_t count;
};

static inline uint64_t sim_range_end(const struct sim_range *range)
{
    return range->start + range->size;
}

/* Adds a range, whose start and size are set. It must overlap no range in the map. */
void sim_rangemap_insert(struct sim_rangemap *map, struct sim_range *range);

/* Removes a range that is in the map. */
void sim_rangemap_remove(struct sim_rangemap *map, struct sim_range *range);

/* The range that contains the address, or NULL. */
struct sim_range *sim_rangemap_find(const struct sim_rangemap *map, uint64_t address);

/* The range that contains the address or, if none does, the next one above it; NULL at the end. */
struct sim_range *sim_rangemap_from(const struct sim_rangemap *map, uint64_t address);

/* The range that follows in address order, or NULL. */
struct sim_range *sim_rangemap_next(const struct sim_rangemap *map, const struct sim_range *range);

/* The lowest range that starts at or above `from` and has at least `size` bytes, or NULL. */
struct sim_range *sim_rangemap_fit(const struct sim_rangemap *map, uint64_t from, uint64_t size);
