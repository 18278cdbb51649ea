/* The choice of a window: the addresses of a claim. Read-only. Not thread-safe: the caller holds
 * the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/extents/extent.h"
#include "pool/memory/backing.h"
#include "pool/order/stream_queue.h"

/* The extents that a window may use. */
enum spw_window_kind {
    SPW_WINDOW_DEVICE, /* backed on the device, or not at all */
    SPW_WINDOW_ANY,    /* also backed on the host */
    SPW_WINDOW_WHOLE,  /* as DEVICE, but only whole granules */
    SPW_WINDOW_FRESH   /* only whole granules without backing */
};

static inline bool spw_pool_window_is_whole(enum spw_window_kind kind)
{
    return kind == SPW_WINDOW_WHOLE || kind == SPW_WINDOW_FRESH;
}

struct spw_window_search {
    const struct spw_heap *heap;
    enum spw_heap_class class; /* of the heap */
    uint64_t bytes;
    const struct spw_stream_queue *queue; /* whose free memory may be used, like idle memory; NULL:
                                           * idle memory only */
    enum spw_window_kind kind;
    size_t wanted; /* granules that should have no backing, to get chunks of the host */
};

struct spw_window {
    uint64_t address, bytes;  /* bytes 0: no run is long enough */
    uint64_t slack;           /* unused bytes of its run */
    size_t missing;           /* granules to back */
    struct spw_extent *first; /* first extent of the run; NULL: the window is behind the frontier */
};

/* Blocks of at least this many granules are cut from the high end of free extents, smaller ones
 * from the low end. So small blocks gather, and seldom keep single granules between large ones. On
 * the recorded traces the capacity without growth allowance rose from 96.6 to 98.0 %, and no figure
 * got worse; 8 was the best of 2 to 16. Separate heaps for medium sizes pack even better, but then
 * the heaps take granules from each other hundreds of times a step. */
enum { SPW_WINDOW_HIGH_GRANULES = 8 };

/* True if blocks of `bytes` are cut from the high end. */
static inline bool spw_pool_window_goes_high(const struct spw_backing *backing, uint64_t bytes)
{
    return bytes >= SPW_WINDOW_HIGH_GRANULES * backing->granule_bytes;
}

/* True if a claim of this kind, for `queue` (NULL: idle memory only), may take the extent. */
static inline bool spw_pool_window_usable(const struct spw_extent *extent,
                                          enum spw_window_kind kind,
                                          const struct spw_stream_queue *queue)
{
    return extent->kind == SPW_EXTENT_HOLE ||
           (extent->kind == SPW_EXTENT_FREE && kind != SPW_WINDOW_FRESH &&
            (kind == SPW_WINDOW_ANY || !extent->host) &&
            (extent->queue->number == SPW_STREAM_QUEUE_IDLE || extent->queue == queue));
}

/* Returns the window whose number of granules without backing is nearest to the wanted one. Among
 * equals it has the fewest such granules, and among these it leaves the least of its run. */
struct spw_window spw_pool_window_best(const struct spw_backing *backing,
                                       const struct spw_window_search *search);
