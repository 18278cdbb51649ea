/* The pool's own state, shared by the files that implement pool.h and by nobody else. */
#pragma once

#include <pthread.h>

#include "common/lock.h"
#include "pool/address_map.h"
#include "pool/backing.h"
#include "pool/stream_queue.h"
#include "pool/move.h"
#include "pool/pool.h"
#include "pool/slabs.h"
#include "pool/space.h"
#include "pool/placement.h"

/* One granule of a move. */
struct spw_move_item {
    size_t granule;
    uint64_t chunk;       /* the new one; when it is committed, the old one */
    uint64_t hash;        /* of the content, when it is verified */
    uint64_t copied_hash; /* of the copy, when it is sampled */
    enum spw_tier to;
    bool staged;   /* the new chunk is mapped in the staging window */
    bool sampled;  /* it is in the sample */
    bool left_out; /* of the commit: its block was fixed meanwhile */
    bool mapped;   /* the new chunk is in place, but nobody has access yet */
    bool committed;
};

/* A move that is under way. */
struct spw_move {
    size_t count;                                  /* 0: none is */
    uint64_t staging;                              /* where its window begins */
    struct spw_move_item items[SPW_MOVE_GRANULES]; /* by rising granule */
    void *fences[SPW_TIER_COUNT]; /* of the copies to it; NULL: none are under way */
    void *drained;                /* of the whole device; NULL: none */
    bool over;                    /* it was ended, but its copies are still under way */
};

struct spw_pool {
    struct spw_lock lock;
    pthread_cond_t waited; /* a thread came back from waiting for a fence */
    struct spw_pool_config config;
    const struct spw_vm_ops *ops;
    void *vm;
    struct spw_counters *counters;
    struct spw_stream_queues lanes;
    struct spw_backing backing;
    struct spw_space space;
    struct spw_slabs slabs;
    struct spw_address_map blocks;
    uint64_t next_id;
    uint64_t own_live_bytes; /* blocks only, without foreign charges */
    uint64_t placed_bytes;   /* of them, what rules have placed on the host */
    uint64_t lazy_bytes;     /* of them, what has no memory yet */
    size_t lazy_count;       /* blocks without memory */
    bool lost_told;          /* in config.lazies: the next work has to ask for what is lost */
    uint64_t fixed_id;       /* blocks up to this one are never moved */
    struct spw_move moves[SPW_MOVES];
    size_t ahead;      /* granules that are mapped beyond a block, at most */
    uint32_t pressure; /* frees that are still watched for a fence, since memory was short */
};

/* Every list of extents: those of the heaps, then those of the slabs, by its first; NULL where
 * there is none. Caller holds the lock. */
static inline size_t spw_pool_list_count(const struct spw_pool *pool)
{
    return SPW_HEAP_COUNT + atomic_load_explicit(&pool->slabs.count, memory_order_relaxed);
}

static inline struct spw_extent *spw_pool_list(const struct spw_pool *pool, size_t i)
{
    return i < SPW_HEAP_COUNT ? pool->space.heaps[i].first
                              : pool->slabs.table[i - SPW_HEAP_COUNT].first;
}

/* The extent that contains `address`, which is the pool's; NULL when none does. Caller holds the
 * lock. */
struct spw_extent *spw_pool_extent(const struct spw_pool *pool, uint64_t address);

/* Learns what the device has done on a lane, or on every lane but `except`, and makes it idle. With
 * `record`, work that no fence covers yet gets one first. Caller holds the lock. */
void spw_pool_settle_lane(struct spw_pool *pool, struct spw_stream_queue *lane, bool record);
void spw_pool_settle(struct spw_pool *pool, const struct spw_stream_queue *except, bool record);

/* Blocks until one pending fence has completed; the caller's lock is given up meanwhile.
 * SPW_E_NO_MEMORY when there is nothing to wait for. */
enum spw_err spw_pool_wait_for_one(struct spw_pool *pool);

/* The slow half of spw_pool_count_live: more is live than ever before. */
void spw_pool_count_peak(struct spw_pool *pool);

/* Counts blocks, or charges, that begin or end, for a site. Caller holds the lock. */
static inline void spw_pool_count_live(struct spw_pool *pool, int64_t change, bool ordered,
                                       uint32_t site)
{
    struct spw_counters *counters = pool->counters;

    spw_counter_shift(&counters->live_bytes, change);
    spw_counter_shift(&counters->async_live_bytes, ordered ? change : 0);
    if (pool->config.charges != NULL) {
        spw_pool_charges_move(pool->config.charges, site, change);
    }
    if (spw_counter_get(&counters->live_bytes) > spw_counter_get(&counters->live_peak_bytes) ||
        spw_counter_get(&counters->async_live_bytes) >
            spw_counter_get(&counters->async_live_peak_bytes)) {
        spw_pool_count_peak(pool);
    }
}

/* Makes a claim that is not backed a block; frees such a block; forgets all of them, for the pool
 * goes. Caller holds the lock, or nobody else has the pool. */
struct spw_extent *spw_pool_lazy_begin(struct spw_pool *pool, struct spw_extent *claim);
void spw_pool_lazy_free(struct spw_pool *pool, struct spw_extent *block);
void spw_pool_lazy_abandon(struct spw_pool *pool);

/* Sees to it that what a move has lost is asked for before the next work, as long as something is.
 * Caller holds the lock. */
void spw_pool_lazy_tell_lost(struct spw_pool *pool);

/* Gets `count` spare chunks, the host's among them when `spilling`. Caller holds the lock, which
 * may be given up for a while. */
enum spw_err spw_pool_provide(struct spw_pool *pool, size_t count, bool spilling);

/* Whether the limit of a rule leaves room for a block on the device; what a rule says of a block
 * that begins; and the end of a block that has a rule. Caller holds the lock. */
bool spw_pool_placement_allows(const struct spw_pool *pool, const struct spw_pool_placement *wish,
                               uint64_t bytes);
void spw_pool_placement_begin(struct spw_pool *pool, struct spw_extent *block,
                              const struct spw_pool_placement *wish);
void spw_pool_placement_end(struct spw_pool *pool, const struct spw_extent *block);

/* A granule has moved to a tier: counts what of it is in blocks that have a rule. Caller holds the
 * lock. */
void spw_pool_placement_moved(struct spw_pool *pool, uint64_t address, enum spw_tier to);

/* Whether an extent lets the granules it lies on be moved. */
static inline bool spw_pool_move_can(const struct spw_pool *pool, const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_BLOCK ? extent->id > pool->fixed_id && extent->fixed == 0
                                            : extent->kind != SPW_EXTENT_CLAIM;
}

/* Ends the moves that are over, as soon as their copies are done. Caller holds the lock. */
void spw_pool_move_settle(struct spw_pool *pool);

/* The addresses of one item, and how many items from `first` on are neighbours and alike in being
 * left out. */
static inline uint64_t spw_pool_move_address(const struct spw_pool *pool,
                                             const struct spw_move_item *item)
{
    return pool->backing.base + item->granule * pool->config.granule_bytes;
}

static inline size_t spw_pool_move_run(const struct spw_move *move, size_t first)
{
    size_t next = first + 1;

    while (next < move->count && move->items[next].granule == move->items[next - 1].granule + 1 &&
           move->items[next].to == move->items[first].to &&
           move->items[next].left_out == move->items[first].left_out) {
        next++;
    }
    return next - first;
}

/* Tries again to put back what a commit lost. True when nothing is lost any more. Caller holds the
 * lock. */
bool spw_pool_remap_lost(struct spw_pool *pool);

/* Gives back what moves hold, whatever their state: all work is complete. Caller holds the lock, or
 * nobody else has the pool. */
void spw_pool_move_drop(struct spw_pool *pool);
