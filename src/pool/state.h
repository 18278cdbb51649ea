/* The state of a pool, shared by the files that implement pool.h. Private to this folder. */
#pragma once

#include <pthread.h>

#include "common/lock.h"
#include "pool/address_map.h"
#include "pool/backing.h"
#include "pool/exported.h"
#include "pool/layout.h"
#include "pool/pool.h"
#include "pool/slabs.h"
#include "pool/space.h"
#include "pool/stream_queue.h"

/* One new chunk of a move. It may replace several neighbouring ones. */
struct spw_move_item {
    size_t granule;       /* its first */
    size_t count;         /* of its granules */
    size_t urgency;       /* 0: the most urgent item */
    uint64_t chunk;       /* the new one */
    uint64_t alias;       /* address at which it is mapped besides */
    uint64_t hash;        /* of the content, if it is verified */
    uint64_t copied_hash; /* of the copy, if it is sampled */
    enum spw_tier to;
    bool sampled;  /* part of the sample */
    bool left_out; /* not to be committed: its block was fixed meanwhile */
    bool mapped;   /* the new chunk is in place, but has no access yet */
    bool committed;
};

/* A move that is under way. */
struct spw_move {
    size_t count;                                  /* 0: not under way */
    size_t granules;                               /* of all items */
    struct spw_move_item items[SPW_MOVE_GRANULES]; /* by rising granule */
    size_t parts;                                  /* of the last copies; 0: none were made */
    size_t ends[SPW_MOVE_PARTS];                   /* item behind the last one of each part */
    void *fences[SPW_MOVE_PARTS][SPW_TIER_COUNT];  /* of the copies; NULL: none under way */
    void *drained;                                 /* covers the whole device; NULL: none */
    bool over;                                     /* ended, but its copies are still under way */
};

enum { SPW_EXPORT_GRANULES = SPW_MOVE_GRANULES }; /* in one step of an export, at most */

/* One new chunk of an export. */
struct spw_export_piece {
    size_t granule, count; /* its first granule, and how many it has */
    uint64_t chunk;
    uint64_t alias; /* address at which it is mapped besides */
    enum spw_tier tier;
    enum spw_lost lost; /* what it lacks at its place */
    bool own;           /* under the block: exportable */
};

/* The step of an export that is under way. */
struct spw_export {
    size_t first, last; /* granules whose chunks are replaced; equal: there is none */
    size_t count;
    struct spw_export_piece pieces[SPW_EXPORT_GRANULES]; /* by rising granule */
    void *fences[SPW_TIER_COUNT];                        /* of the copies; NULL: none under way */
    void *drained;                                       /* covers the whole device; NULL: none */
    bool committed;
    bool over; /* ended, but its copies are still under way */
};

struct spw_pool {
    struct spw_lock lock;
    pthread_cond_t waited; /* a thread came back from waiting for a fence */
    struct spw_pool_config config;
    struct spw_vm *vm;
    struct spw_counters *counters;        /* the device's; after spw_pool_shut the pool's own */
    struct spw_counters *device_counters; /* with those of other pools of the device */
    struct spw_counters own_counters;
    struct spw_stream_queues queues;
    struct spw_backing backing;
    struct spw_space space;
    struct spw_slabs slabs;
    struct spw_address_map blocks;
    struct spw_layout layout;
    unsigned largest_order; /* of chunks to create */
    bool shut;              /* it will be destroyed: nothing begins or ends any more */
    uint64_t next_id;
    uint64_t own_live_bytes;  /* blocks only, without foreign charges */
    uint64_t placed_bytes;    /* part of them that was placed on the host */
    uint64_t lazy_bytes;      /* part of them that has no memory yet */
    size_t lazy_count;        /* lazy blocks */
    uint64_t uncounted_bytes; /* of lazy blocks that are no part of own_live_bytes */
    bool lost_announced;      /* config.to_commit counts lost granules of this pool */
    uint64_t fixed_id;        /* blocks up to this id are not moved; 0: none */
    uint8_t overruled;        /* enum spw_fixed_reason, as bits, that keep no block in place now:
                               * 0, or SPW_FIXED_BY_GRAPH */
    struct spw_move moves[SPW_MOVES];
    struct spw_export export;
    struct spw_vm_copy copies[SPW_MOVE_GRANULES]; /* scratch, too large for a stack */
    struct spw_exported exported;
    size_t ahead;      /* granules mapped behind a block, at most */
    uint32_t pressure; /* frees for which fences are still recorded early, since memory was short */
};

/* Iterate over all lists of extents, those of the heaps and then those of the slabs: their number,
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

/* True if a reason keeps a block in its place, even if it is overruled. */
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
    return pool->backing.base + item->granule * pool->config.granule_bytes;
}

static inline uint64_t spw_pool_move_bytes(const struct spw_pool *pool,
                                           const struct spw_move_item *item)
{
    return item->count * pool->config.granule_bytes;
}

/* Returns the first item of a part. */
static inline size_t spw_pool_move_part_begin(const struct spw_move *move, size_t part)
{
    return part > 0 ? move->ends[part - 1] : 0;
}

/* True if the second item lies directly behind the first. */
static inline bool spw_pool_move_adjoins(const struct spw_move_item *first,
                                         const struct spw_move_item *second)
{
    return second->granule == first->granule + first->count;
}

/* Returns how many items from `first` on are neighbours of one size with the same target and the
 * same `left_out`. */
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
