/* The choice of a window: the addresses that a claim is made of. Changes nothing. Caller holds the
 * pool's lock. */
#pragma once

#include "pool/space.h"

struct spw_window {
    uint64_t address, bytes;  /* bytes 0: no run is long enough */
    uint64_t slack;           /* what is left over of the run it is cut from */
    size_t missing;           /* granules to back */
    struct spw_extent *first; /* of the run; NULL: everything is behind the frontier */
};

/* Blocks of so many granules are cut from the high end of what is free, smaller ones from the low
 * end. So the small ones gather, and seldom pin a granule each between large ones: on the traces
 * the capacity with no allowance rose from 96.6 to 98.0 % and nothing else got worse (eight was the
 * best of 2 to 16). Heaps of their own for sizes in between pack still better, but then the heaps
 * take granules from each other all the time: hundreds of steals a step. */
enum { SPW_WINDOW_HIGH_GRANULES = 8 };

static inline bool spw_pool_window_goes_high(const struct spw_space *space, uint64_t bytes)
{
    return bytes >= SPW_WINDOW_HIGH_GRANULES * space->backing->granule_bytes;
}

/* The window of a heap for `bytes` that needs the fewest new granules; of those, the one that
 * leaves the least of its run. `queue`: whose free memory it may be made of beside what is idle, or
 * NULL. */
struct spw_window spw_pool_window_best(const struct spw_space *space, const struct spw_heap *heap,
                                       uint64_t bytes, const struct spw_stream_queue *queue,
                                       enum spw_window_kind kind);
