/* The state of a pool, for the files that implement pool.h. Private to this folder. */
#pragma once

#include <pthread.h>

#include "common/lock.h"
#include "pool/extents/address_map.h"
#include "pool/memory/backing.h"
#include "pool/order/stream_queue.h"
#include "pool/plan/layout.h"
#include "pool/pool.h"
#include "pool/space/exported.h"
#include "pool/space/slabs.h"
#include "pool/space/space.h"

/* One new chunk of a move. It may replace several neighbouring chunks. */
struct spw_move_item {
    size_t granule;       /* the first */
    size_t count;         /* granules of the chunk */
    size_t urgency;       /* 0: the most urgent item */
    uint64_t chunk;       /* the new chunk */
    uint64_t alias;       /* its second address */
    uint64_t hash;        /* of the content, if it is verified */
    uint64_t copied_hash; /* of the copy, if it is sampled */
    enum spw_tier to;
    bool sampled;  /* part of the sample */
    bool left_out; /* not to be committed, for example because its block was fixed */
    bool mapped;   /* the new chunk is in place, but has no access yet */
    bool committed;
};

/* A move under way. */
struct spw_move {
    size_t count;                                  /* 0: not under way */
    size_t granules;                               /* of all items */
    struct spw_move_item items[SPW_MOVE_GRANULES]; /* by rising granule */
    size_t parts;                                  /* of the last copies; 0: none were made */
    size_t ends[SPW_MOVE_PARTS];                   /* end of each part, as an item */
    void *fences[SPW_MOVE_PARTS][SPW_TIER_COUNT];  /* of the copies; NULL: none under way */
    void *drained;                                 /* covers the whole device; NULL: none */
    bool over;                                     /* ended, but its copies are still under way */
};

enum { SPW_EXPORT_GRANULES = SPW_MOVE_GRANULES }; /* the most in one step of an export */

/* One new chunk of an export. */
struct spw_export_piece {
    size_t granule, count; /* first granule, and number of granules */
    uint64_t chunk;
    uint64_t alias; /* its second address */
    enum spw_tier tier;
    enum spw_lost lost; /* the lost part of its mapping */
    bool own;           /* under the block, so exportable */
};

/* The step of an export under way. */
struct spw_export {
    size_t first, last; /* granules whose chunks are replaced; equal: no step */
    size_t count;
    struct spw_export_piece pieces[SPW_EXPORT_GRANULES]; /* by rising granule */
    void *fences[SPW_TIER_COUNT];                        /* of the copies; NULL: none under way */
    void *drained;                                       /* covers the whole device; NULL: none */
    bool committed;
    bool over; /* ended, but its copies are still under way */
};

struct spw_pool {
    struct spw_lock lock;
    pthread_cond_t waited; /* a thread has returned from waiting for a fence */
    struct spw_pool_config config;
    struct spw_vm *vm;
    struct spw_counters *counters;        /* the device's; after spw_pool_shut the pool's own */
    struct spw_counters *device_counters; /* including other pools of the device */
    struct spw_counters own_counters;
    struct spw_stream_queues queues;
    struct spw_backing backing;
    struct spw_space space;
    struct spw_slabs slabs;
    struct spw_address_map blocks;
    struct spw_layout layout;
    bool shut; /* will be destroyed: no block begins or ends any more */
    uint64_t next_id;
    uint64_t own_live_bytes;  /* blocks only, without foreign charges */
    uint64_t placed_bytes;    /* the part that was placed on the host */
    uint64_t lazy_bytes;      /* the part that has no memory yet */
    size_t lazy_count;        /* lazy blocks */
    uint64_t uncounted_bytes; /* of lazy blocks not counted in own_live_bytes */
    bool lost_announced;      /* config.to_commit counts lost granules of this pool */
    uint64_t fixed_id;        /* blocks up to this id are not moved */
    uint8_t overruled;        /* bits of enum spw_fixed_reason that keep no block in place now: 0,
                               * or SPW_FIXED_BY_GRAPH */
    struct spw_move moves[SPW_MOVES];
    struct spw_export export;
    struct spw_vm_copy copies[SPW_MOVE_GRANULES]; /* scratch, larger than a stack allows */
    struct spw_exported exported;
    size_t ahead;      /* granules mapped behind a block, at most */
    uint32_t pressure; /* frees left with early fences, since memory was short */
};

/* Iterate over all lists of extents, first of the heaps and then of the slabs: the number of lists,
 * and the first extent of list `i`, NULL when it is empty. Caller holds the lock. */
static inline size_t spw_pool_list_count(const struct spw_pool *pool)
{
    return SPW_HEAP_COUNT + atomic_load_explicit(&pool->slabs.count, memory_order_relaxed);
}

static inline struct spw_extent *spw_pool_list(const struct spw_pool *pool, size_t i)
{
    return i < SPW_HEAP_COUNT ? pool->space.heaps[i].first
                              : pool->slabs.table[i - SPW_HEAP_COUNT].first;
}

/* True if a block has a reason to stay in its place, even an overruled one. */
static inline bool spw_pool_is_fixed(const struct spw_extent *block)
{
    return (block->fixed & ~SPW_NAMED_BY_GRAPH) != 0;
}

/* True if an extent lets the granules under it be moved. */
static inline bool spw_pool_can_move(const struct spw_pool *pool, const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_BLOCK
               ? extent->id > pool->fixed_id &&
                     (extent->fixed & ~(pool->overruled | SPW_NAMED_BY_GRAPH)) == 0
               : extent->kind != SPW_EXTENT_CLAIM;
}

/* Returns the address of an item's first granule, and its size. */
static inline uint64_t spw_pool_move_address(const struct spw_pool *pool,
                                             const struct spw_move_item *item)
{
    return pool->backing.base + item->granule * pool->backing.granule_bytes;
}

static inline uint64_t spw_pool_move_bytes(const struct spw_pool *pool,
                                           const struct spw_move_item *item)
{
    return item->count * pool->backing.granule_bytes;
}

/* Returns the first item of a part. */
static inline size_t spw_pool_move_part_begin(const struct spw_move *move, size_t part)
{
    return part > 0 ? move->ends[part - 1] : 0;
}

/* True if the second item is directly behind the first. */
static inline bool spw_pool_move_adjoins(const struct spw_move_item *first,
                                         const struct spw_move_item *second)
{
    return second->granule == first->granule + first->count;
}

/* Returns the number of items from `first` on that are neighbours of one size with the same target
 * and the same `left_out`. */
static inline size_t spw_pool_move_run(const struct spw_move *move, size_t first)
{
    size_t next = first + 1;

    while (next < move->count &&
           spw_pool_move_adjoins(&move->items[next - 1], &move->items[next]) &&
           move->items[next].count == move->items[first].count &&
           move->items[next].to == move->items[first].to &&
           move->items[next].left_out == move->items[first].left_out) {
        next++;
    }
    return next - first;
}
