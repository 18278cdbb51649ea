/* The choice of a window: the addresses that a claim is made of. Changes nothing. Not thread-safe:
 * the caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/backing.h"
#include "pool/extent.h"
#include "pool/stream_queue.h"

/* The extents that a window may be made of. */
enum spw_window_kind {
    SPW_WINDOW_DEVICE, /* backed on the device, or not at all */
    SPW_WINDOW_ANY,    /* also backed on the host */
    SPW_WINDOW_WHOLE,  /* as DEVICE, but only whole granules */
    SPW_WINDOW_FRESH   /* whole granules of which none is backed */
};

static inline bool spw_pool_window_is_whole(enum spw_window_kind kind)
{
    return kind == SPW_WINDOW_WHOLE || kind == SPW_WINDOW_FRESH;
}

struct spw_window_search {
    const struct spw_heap *heap;
    enum spw_heap_class class; /* of the heap */
    uint64_t bytes;
    const struct spw_stream_queue *queue; /* its free memory may be used besides idle memory; NULL:
                                             idle memory only */
    enum spw_window_kind kind;
    size_t wanted; /* granules that should have no backing, as they get that of the host */
};

struct spw_window {
    uint64_t address, bytes;  /* bytes 0: no run is long enough */
    uint64_t slack;           /* left over of the run that it is cut from */
    size_t missing;           /* granules to back */
    struct spw_extent *first; /* of the run; NULL: everything is behind the frontier */
};

/* Blocks of at least this many granules are cut from the high end of free extents, smaller ones
 * from the low end. Small blocks so gather and seldom keep a granule each between large ones. On
 * the recorded traces the capacity with no growth allowance rose from 96.6 to 98.0 % and nothing
 * got worse; 8 was the best of 2 to 16. Separate heaps for medium sizes pack even better, but then
 * the heaps take granules from each other hundreds of times a step. */
enum { SPW_WINDOW_HIGH_GRANULES = 8 };

/* True if blocks of `bytes` are cut from the high end. */
static inline bool spw_pool_window_goes_high(const struct spw_backing *backing, uint64_t bytes)
{
    return bytes >= SPW_WINDOW_HIGH_GRANULES * backing->granule_bytes;
}

/* True if a claim of this kind may take the extent, for `queue` (NULL: idle memory only). */
static inline bool spw_pool_window_usable(const struct spw_extent *extent,
                                          enum spw_window_kind kind,
                                          const struct spw_stream_queue *queue)
{
    return extent->kind == SPW_EXTENT_HOLE ||
           (extent->kind == SPW_EXTENT_FREE && kind != SPW_WINDOW_FRESH &&
            (kind == SPW_WINDOW_ANY || !extent->host) &&
            (extent->queue->number == SPW_STREAM_QUEUE_IDLE || extent->queue == queue));
}

/* Returns the window in which the number of granules without backing is nearest to the wanted one;
 * of those, the one with the fewest, and that leaves the least of its run. */
struct spw_window spw_pool_window_best(const struct spw_backing *backing,
                                       const struct spw_window_search *search);
