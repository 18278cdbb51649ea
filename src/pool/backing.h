/* Backing: which granules of the arena have physical memory, and the spare chunks.
 *
 * A chunk is a piece of physical memory, on the device or on the host, of 1, 2, 4 ... granules: 2
 * to the power of its order. A driver call costs about as much for a large chunk as for a small
 * one, but a chunk is mapped, unmapped and moved as a whole. It is mapped at consecutive granules
 * of the arena, spare, or held by a move. Amounts of chunks are counted in granules. "Spare" alone
 * means spare chunks of the device.
 *
 * Every granule remembers the last free that touched it, as queue and number, so that pending
 * device work is known granule by granule. Work is done by ranges: one set-access call and, where
 * the backend can, one unmap call for a run of neighbours on chunks of one size. Not thread-safe:
 * the caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "pool/stock.h"
#include "pool/stream_queue.h"
#include "pool/vm_ops.h"

/* Things that the backend has refused to restore after a move. */
enum spw_lost { SPW_LOST_NOTHING, SPW_LOST_ACCESS, SPW_LOST_MAPPING };

struct spw_granule {
    uint64_t chunk;    /* 0: not backed; else the backend's handle plus 1 */
    uint64_t seq;      /* of the last free inside */
    uint32_t queue;    /* number of that free's queue */
    uint8_t order;     /* of the chunk */
    uint8_t part;      /* number of this granule in the chunk */
    uint8_t lost;      /* enum spw_lost: the chunk has the content, but no access */
    uint8_t tier : 1;  /* enum spw_tier of the chunk */
    bool broken : 1;   /* serves no new block: the backend failed half-way here, or `exported` */
    bool pinned : 1;   /* a move reads it: must not be unmapped */
    bool exported : 1; /* other processes may map the chunk (export.h): it stays here, and is
                        * released when no block is left on it */
    bool swapped : 1;  /* the chunk was released (swap.h); the fields above still describe it */
    struct spw_extent
        *start; /* the block that began here last; the record may serve another extent by now */
};

struct spw_backing {
    struct spw_granule *granules;
    uint64_t base, bytes, granule_bytes;
    uint64_t alias_bytes;
    unsigned granule_shift;
    struct spw_stock stock;
    uint64_t *kept;  /* bits of granules that are stolen last (layout.h); NULL: there are none */
    bool takes_kept; /* stealing does not spare them */
    size_t broken;   /* number of broken granules */
    size_t lost;     /* number of granules with something lost */
    size_t swapped;  /* number of granules that are swapped out */
    struct spw_vm *vm;
    struct spw_stream_queues *queues;
    struct spw_counters *counters;
};

/* Pointers are not owned. Sizes are multiples of the granule. */
struct spw_backing_config {
    struct spw_vm *vm;
    struct spw_stream_queues *queues;
    struct spw_counters *counters;
    _Atomic uint64_t *host_chunks; /* counts granules of the host's chunks; NULL: not counted */
    uint64_t arena_bytes, granule_bytes;
    uint64_t alias_bytes; /* addresses for second mappings, behind the arena (alias.h) */
};

/* Reserves the addresses of the arena and those behind it; nothing is backed. On failure nothing is
 * left behind. */
enum spw_err spw_pool_backing_init(struct spw_backing *backing,
                                   const struct spw_backing_config *config);

/* Frees the records. With `release`, unmaps and releases everything first; no work may be pending.
 */
void spw_pool_backing_fini(struct spw_backing *backing, bool release);

/* Takes the chunks out of the device's counters. */
void spw_pool_backing_uncount(const struct spw_backing *backing, struct spw_counters *counters);

static inline size_t spw_pool_backing_index(const struct spw_backing *backing, uint64_t address)
{
    return (size_t)((address - backing->base) >> backing->granule_shift);
}

static inline bool spw_pool_backing_has(const struct spw_backing *backing, uint64_t address)
{
    return backing->granules[spw_pool_backing_index(backing, address)].chunk != 0;
}

/* Returns how many granules the spare chunks of the device have. */
static inline size_t spw_pool_backing_spare(const struct spw_backing *backing)
{
    return backing->stock.tiers[SPW_TIER_DEVICE].spare;
}

/* Returns the first granule of the chunk that backs granule `index`, and the granule behind it. */
static inline size_t spw_pool_backing_chunk_begin(const struct spw_backing *backing, size_t index)
{
    return index - backing->granules[index].part;
}

static inline size_t spw_pool_backing_chunk_end(const struct spw_backing *backing, size_t index)
{
    return spw_pool_backing_chunk_begin(backing, index) +
           spw_pool_stock_size(backing->granules[index].order);
}

/* Returns the end of the chunks of one size from granule `first` on, at most `last`: the backend
 * takes them in one call. Both lie between chunks. */
size_t spw_pool_backing_end_of_size(const struct spw_backing *backing, size_t first, size_t last);

/* True if any chunk of the host is mapped, or may be again after swapping. */
static inline bool spw_pool_backing_uses_host(const struct spw_backing *backing)
{
    const struct spw_stock_tier *host = &backing->stock.tiers[SPW_TIER_HOST];

    return host->total > host->spare + host->held || backing->swapped > 0;
}

static inline uint64_t spw_pool_backing_down(const struct spw_backing *backing, uint64_t address)
{
    return address & ~(backing->granule_bytes - 1);
}

static inline uint64_t spw_pool_backing_up(const struct spw_backing *backing, uint64_t address)
{
    return (address + backing->granule_bytes - 1) & ~(backing->granule_bytes - 1);
}

/* Counts host memory outside of chunks: `bytes` allocated and `used` in use, as differences. */
void spw_pool_backing_count_host(struct spw_backing *backing, int64_t bytes, int64_t used);

/* True if a granule of [address, end) is on the host; and how many bytes of it are. */
bool spw_pool_backing_on_host(const struct spw_backing *backing, uint64_t address, uint64_t end);
uint64_t spw_pool_backing_host_bytes(const struct spw_backing *backing, uint64_t address,
                                     uint64_t end);

/* Returns how many bytes of [address, end) from `address` on are in one tier. */
uint64_t spw_pool_backing_run(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* Mark a granule broken for good; or the granules of the chunk that begins there lost, and broken
 * as long as something is lost. */
void spw_pool_backing_mark_broken(struct spw_backing *backing, size_t granule);
void spw_pool_backing_mark_lost(struct spw_backing *backing, size_t granule, enum spw_lost lost);

/* True if a granule of [address, end) is broken. */
bool spw_pool_backing_is_broken(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* Returns how many granules [address, end) touches. */
static inline size_t spw_pool_backing_granules(const struct spw_backing *backing, uint64_t address,
                                               uint64_t end)
{
    return spw_pool_backing_index(backing, end - 1) - spw_pool_backing_index(backing, address) + 1;
}

/* Returns how many granules of [address, end) have no chunk. */
size_t spw_pool_backing_missing(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* Notes a free of [address, end), the newest of `queue`, as the last use of its granules. */
void spw_pool_backing_note_free(struct spw_backing *backing, uint64_t address, uint64_t end,
                                const struct spw_stream_queue *queue);

/* Returns how many granules of the device spw_pool_backing_steal could take from [address, end). */
size_t spw_pool_backing_stealable(const struct spw_backing *backing, uint64_t address,
                                  uint64_t end);

/* Unmaps whole chunks of a tier inside [address, end) whose work is complete, from the high end
 * down, until there are `most` granules or, with the last chunk, a few more; they become spare.
 * Returns how many granules. */
size_t spw_pool_backing_steal(struct spw_backing *backing, enum spw_tier tier, uint64_t address,
                              uint64_t end, size_t most);

/* Unmaps chunks of the device in [address, end), whole granules, until `count` of these have no
 * chunk, evenly spread if possible, and the last granule is one of them. Spares what
 * spw_pool_backing_steal spares. Returns how many granules have no chunk. */
size_t spw_pool_backing_make_holes(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t count);

/* Maps spare chunks at every granule of [address, end) that has none and makes them accessible. A
 * chunk that is too large is released, and smaller ones are created instead. Chunks of the host are
 * used for `host` of these granules, evenly spread, and when those of the device are used up.
 * There must be enough of both together. On failure some granules may have been backed; they are
 * accessible unless marked broken. The next call gives access to those as well. */
enum spw_err spw_pool_backing_fill(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t host);

/* Marks the granules of [address, end): they are to keep their chunks, and are stolen last; or not.
 * Nothing happens when the process has no memory. */
void spw_pool_backing_keep(struct spw_backing *backing, uint64_t address, uint64_t end, bool keep);

/* Records a held chunk of tier `to` and of an order as that of the granules from `granule` on, in
 * place of one or more whole chunks, which become spare. */
void spw_pool_backing_exchange(struct spw_backing *backing, size_t granule, enum spw_tier to,
                               unsigned order, uint64_t chunk);

/* The two halves of that: makes the chunks that are recorded for granules [first, last), whole
 * chunks, spare; and records a held chunk. */
void spw_pool_backing_give_up(struct spw_backing *backing, size_t first, size_t last);
void spw_pool_backing_install(struct spw_backing *backing, size_t granule, enum spw_tier to,
                              unsigned order, uint64_t chunk);

/* Marks the granules of the chunk that begins at one as exported. */
void spw_pool_backing_mark_exported(struct spw_backing *backing, size_t granule);

/* Unmaps an exported chunk, whose work is complete and which begins at a granule, and releases it.
 * False when the backend refuses to unmap; then nothing has changed. */
bool spw_pool_backing_release_exported(struct spw_backing *backing, size_t granule);

/* Applies the backend's present access list to everything mapped in [address, end), except what is
 * lost. */
enum spw_err spw_pool_backing_refresh_access(struct spw_backing *backing, uint64_t address,
                                             uint64_t end);
