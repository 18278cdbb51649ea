/* The whole pool and its lock: allocations, frees, look-ups of blocks. It does not know how moves
 * begin and commit.
 *
 *   state       the pool, made of the parts of the rooms below
 *   alloc       an allocation
 *   free        a free, and the end of streams and contexts
 *   chunks      where chunks for new addresses come from
 *   lazy        blocks that get their memory later
 *   placement   the limits and figures of accounts
 *   attributes  the priority of blocks, and reasons that keep them in place
 *   limits      the limits of the tiers, trimming, memory that the program creates itself
 *   usage       figures of live memory
 *   query       look-ups by address
 *   fences      fences for callers of the pool */

/* The state of a pool, for the files that implement pool.h. Private to this folder. */
#pragma once

#include "pool/extents/address_map.h"
#include "pool/memory/backing.h"
#include "pool/memory/moves.h"
#include "pool/order/stream_queue.h"
#include "pool/plan/layout.h"
#include "pool/pool.h"
#include "pool/space/exported.h"
#include "pool/space/slabs.h"
#include "pool/space/space.h"
#include "system/lock.h"

/* How much memory is live, and to whom it is charged. */
struct spw_figures {
    struct spw_counters *counters;        /* the device's counters; after spw_pool_shut:
                                             own_counters */
    struct spw_counters *device_counters; /* the device's counters, which its pools share */
    struct spw_charges *charges;          /* by site; see struct spw_pool_config; may be NULL */
    struct spw_account *accounts;         /* by group; see struct spw_pool_config; may be NULL */
    uint64_t own_live_bytes;              /* bytes of blocks only, without foreign charges */
    uint64_t placed_bytes;                /* part of live memory that was placed on the host */
    uint64_t lazy_bytes;                  /* part of own_live_bytes that has no memory yet */
    size_t lazy_count;                    /* number of lazy blocks */
    uint64_t uncounted_bytes;             /* bytes of lazy blocks that own_live_bytes does not
                                             include */
    struct spw_counters own_counters;
};

struct spw_pool {
    struct spw_lock lock;
    struct spw_figures figures;
    struct spw_stream_queues queues;
    struct spw_backing backing;
    struct spw_space space;
    struct spw_slabs slabs;
    struct spw_address_map blocks;
    struct spw_layout layout;
    bool shut;         /* will be destroyed: blocks are no longer allocated or freed */
    bool host_untried; /* a host tier may be opened later, when the device is full */
    uint64_t next_id;
    struct spw_moves moves;
    struct spw_exported exported;
};

/* Iterate over all lists of extents: first the lists of the heaps, then those of the slabs. The
 * first function returns the number of lists. The second returns the first extent of list `i`, or
 * NULL if the list is empty. Caller holds the lock. */
static inline size_t spw_pool_list_count(const struct spw_pool *pool)
{
    return SPW_HEAP_COUNT + atomic_load_explicit(&pool->slabs.count, memory_order_relaxed);
}

static inline struct spw_extent *spw_pool_list(const struct spw_pool *pool, size_t i)
{
    return i < SPW_HEAP_COUNT ? pool->space.heaps[i].first
                              : pool->slabs.table[i - SPW_HEAP_COUNT].first;
}
