/* Backing: which granules of the arena have physical memory, and the chunks that are spare.
 *
 * A chunk is one granule of physical memory, on the device or on the host, mapped at one granule of
 * the arena or spare; what is said of spare chunks means the device's unless it says host. Every
 * granule carries the last free that touched it, as queue and number, so that it is known granule
 * by granule whether device work may still use it. Work is done by ranges: one set-access and,
 * where the seam can, one unmap for a run of neighbours. Caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "pool/stream_queue.h"
#include "pool/vm_ops.h"

/* What the seam has refused to put back after a move. */
enum spw_lost { SPW_LOST_NOTHING, SPW_LOST_ACCESS, SPW_LOST_MAPPING };

struct spw_granule {
    uint64_t chunk;           /* 0: not backed; seam handles are kept with 1 added */
    uint64_t seq;             /* of the last free inside */
    uint32_t queue;           /* of that free */
    bool broken;              /* the seam failed half-way here: not used again */
    uint8_t tier;             /* enum spw_tier of the chunk */
    bool pinned;              /* a move is reading it: not unmapped */
    uint8_t lost;             /* enum spw_lost: the chunk has the content, but nobody reaches it */
    struct spw_extent *start; /* of the block that began in it last, and may be gone by now */
};

/* The chunks of one tier. */
struct spw_chunk_store {
    uint64_t *spare; /* mapped nowhere */
    size_t spare_count, spare_capacity;
    size_t held;        /* in the hands of a move: neither mapped in the arena nor spare */
    size_t chunk_count; /* mapped, spare or held */
};

/* Granules in a staging window, and windows. */
enum { SPW_BACKING_STAGING = 256, SPW_BACKING_WINDOWS = 2 };

struct spw_backing {
    struct spw_granule *granules;
    uint64_t base, bytes, granule_bytes;
    uint64_t staging; /* addresses behind the arena, where moves copy to: windows in a row */
    unsigned granule_shift;
    struct spw_chunk_store tiers[SPW_TIER_COUNT];
    size_t broken; /* granules that are */
    size_t lost;   /* granules of which something is */
    const struct spw_vm_ops *ops;
    void *vm;
    struct spw_stream_queues *queues;
    struct spw_counters *counters;
};

/* Reserves the arena and its table; nothing is backed. On failure nothing is left behind. */
enum spw_err spw_pool_backing_init(struct spw_backing *backing, const struct spw_vm_ops *ops,
                                   void *vm, struct spw_stream_queues *queues,
                                   struct spw_counters *counters, uint64_t arena_bytes,
                                   uint64_t granule_bytes);

/* Frees the records; with `release`, unmaps and releases everything first (no pending work). */
void spw_pool_backing_fini(struct spw_backing *backing, bool release);

static inline size_t spw_pool_backing_index(const struct spw_backing *backing, uint64_t address)
{
    return (size_t)((address - backing->base) >> backing->granule_shift);
}

static inline bool spw_pool_backing_has(const struct spw_backing *backing, uint64_t address)
{
    return backing->granules[spw_pool_backing_index(backing, address)].chunk != 0;
}

/* The device's spare chunks. */
static inline size_t spw_pool_backing_spare(const struct spw_backing *backing)
{
    return backing->tiers[SPW_TIER_DEVICE].spare_count;
}

/* Whether any chunk of the host is mapped. */
static inline bool spw_pool_backing_uses_host(const struct spw_backing *backing)
{
    const struct spw_chunk_store *host = &backing->tiers[SPW_TIER_HOST];

    return host->chunk_count > host->spare_count + host->held;
}

static inline uint64_t spw_pool_backing_down(const struct spw_backing *backing, uint64_t address)
{
    return address & ~(backing->granule_bytes - 1);
}

static inline uint64_t spw_pool_backing_up(const struct spw_backing *backing, uint64_t address)
{
    return (address + backing->granule_bytes - 1) & ~(backing->granule_bytes - 1);
}

/* Counts memory of the host that is in no chunk: what is there, and what is in use. */
void spw_pool_backing_count_host(struct spw_backing *backing, int64_t bytes, int64_t used);

/* Whether a granule of [address, end) is on the host, and how many of its bytes are. */
bool spw_pool_backing_on_host(const struct spw_backing *backing, uint64_t address, uint64_t end);
uint64_t spw_pool_backing_host_bytes(const struct spw_backing *backing, uint64_t address,
                                     uint64_t end);

/* Marks a granule: never used again; out of use as long as something is lost of it. */
void spw_pool_backing_mark_broken(struct spw_backing *backing, size_t granule);
void spw_pool_backing_mark_lost(struct spw_backing *backing, size_t granule, enum spw_lost lost);

/* Whether a granule of [address, end) is broken. */
bool spw_pool_backing_is_broken(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* How many granules [address, end) touches. */
static inline size_t spw_pool_backing_granules(const struct spw_backing *backing, uint64_t address,
                                               uint64_t end)
{
    return spw_pool_backing_index(backing, end - 1) - spw_pool_backing_index(backing, address) + 1;
}

/* How many granules of [address, end) have no chunk. */
size_t spw_pool_backing_missing(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* Notes a free of [address, end) as the last use of its granules. */
void spw_pool_backing_note_free(struct spw_backing *backing, uint64_t address, uint64_t end,
                                const struct spw_stream_queue *queue);

/* Creates one chunk of a tier and keeps it as spare. */
enum spw_err spw_pool_backing_create(struct spw_backing *backing, enum spw_tier tier);

/* How many of the device's chunks spw_pool_backing_steal could take from [address, end). */
size_t spw_pool_backing_stealable(const struct spw_backing *backing, uint64_t address,
                                  uint64_t end);

/* Makes spare the tier's chunks of whole granules inside [address, end) whose pending work has
 * completed, at most `most` of them, from the high end down. Returns how many were taken. */
size_t spw_pool_backing_steal(struct spw_backing *backing, enum spw_tier tier, uint64_t address,
                              uint64_t end, size_t most);

/* Maps spare chunks under every granule of [address, end) that has none and makes them accessible:
 * the host's under `host` granules of the range, evenly spread, and where the device's are used up.
 * There must be enough of both together. On failure some granules may have been backed, all of them
 * accessible but for those marked broken. */
enum spw_err spw_pool_backing_fill(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t host);

/* Releases spare chunks of a tier, at most `most`. Returns how many. */
size_t spw_pool_backing_release(struct spw_backing *backing, enum spw_tier tier, size_t most);

/* For moves: takes a spare chunk of a tier, which is held then; gives back one that was held; and
 * puts a held chunk of tier `to` in the books as the granule's own, whose old chunk is held and
 * returned. Nothing is mapped or unmapped here. */
uint64_t spw_pool_backing_hold(struct spw_backing *backing, enum spw_tier tier);
void spw_pool_backing_unhold(struct spw_backing *backing, enum spw_tier tier, uint64_t chunk);
uint64_t spw_pool_backing_exchange(struct spw_backing *backing, size_t granule, enum spw_tier to,
                                   uint64_t chunk);

/* Applies the seam's present access list to everything mapped in [address, end), but for what is
 * lost. */
enum spw_err spw_pool_backing_refresh_access(struct spw_backing *backing, uint64_t address,
                                             uint64_t end);
