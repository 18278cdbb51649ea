/* A heap of addresses: cuts pieces from segments and takes them back.
 *
 * Free space is kept in one map of disjoint ranges. Adjacent free ranges merge, but never across
 * the border of a segment, so that an unused segment can be removed. The heap gives no meaning to
 * the addresses.
 *
 * Locking: none of its own. Callers hold the simulator's lock (core/lock.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/driver/core/rangemap.h"

struct sim_segment {
    struct sim_range range;
    uint64_t used; /* bytes taken */
    void *owner;   /* for the caller's use */
};

struct sim_heap {
    struct sim_rangemap segments;
    struct sim_rangemap free;
    bool next_fit; /* search above the last piece first, so that addresses are reused late */
    uint64_t cursor;
};

/* Adds free space as a new segment. NULL if host memory is exhausted. */
struct sim_segment *sim_heap_add(struct sim_heap *heap, uint64_t start, uint64_t size, void *owner);

/* Removes an unused segment. */
void sim_heap_remove(struct sim_heap *heap, struct sim_segment *segment);

/* Takes `size` bytes and returns their address; 0 if no free range is large enough. */
uint64_t sim_heap_take(struct sim_heap *heap, uint64_t size);

/* Gives back a piece or a part of one; returns the segment that contains it. */
struct sim_segment *sim_heap_give(struct sim_heap *heap, uint64_t start, uint64_t size);
