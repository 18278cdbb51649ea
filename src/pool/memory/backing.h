/* Physical memory, and where it is mapped. It does not know which addresses are free.
 *
 *   alias       second mappings of chunks
 *   away        chunks that are mapped only at their second addresses
 *   stock       creates and releases chunks, and keeps the spare ones
 *   backing     the granules of the arena, and the chunks behind them
 *   old_chunks  unmaps chunks that new ones replace, or puts them back
 *   moves       the granules and chunks of the moves in progress, and the end of moves */

/* Backing: the physical memory of the arena's granules, and the spare chunks.
 *
 * A chunk is a piece of physical memory, on the device or on the host, of 1, 2, 4 ... granules: 2
 * to the power of its order. A driver call costs about as much for a large chunk as for a small
 * one. However, a chunk can be mapped, unmapped and moved only as a whole. A chunk is mapped at
 * consecutive granules of the arena, or spare, or held by a move. Amounts of chunks are counted in
 * granules. "Spare" alone means spare chunks of the device.
 *
 * Every granule stores the last free that affected it, as queue and number. Pending device work is
 * therefore known for each granule. A run of neighbouring chunks of one size gets its access by one
 * call. If the backend can, one call also unmaps the run. Not thread-safe: the caller holds the
 * pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "pool/memory/stock.h"
#include "pool/order/stream_queue.h"
#include "pool/vm_ops.h"

/* After so many refusals of access in a row, no move begins. A refusal or two may pass. */
enum { SPW_BACKING_REFUSALS = 8 };

/* The part of a mapping that the backend refused to restore after a move. */
enum spw_lost { SPW_LOST_NOTHING, SPW_LOST_ACCESS, SPW_LOST_MAPPING };

struct spw_granule {
    uint64_t chunk;    /* the backend's handle plus 1; 0: not backed */
    uint64_t seq;      /* number of the last free that affected the granule */
    uint32_t queue;    /* number of the queue of that free */
    uint8_t order;     /* order of the chunk */
    uint8_t part;      /* index of this granule in the chunk */
    uint8_t lost;      /* enum spw_lost; the chunk still has the content */
    uint8_t tier : 1;  /* enum spw_tier of the chunk */
    bool broken : 1;   /* serves no new block, because the backend failed halfway, or because of
                          `exported` */
    bool pinned : 1;   /* a move is reading the granule, so it must not be unmapped */
    bool exported : 1; /* other processes may map the chunk (export.h): it stays here until the last
                          block on it ends, and is then released */
    bool swapped : 1;  /* the chunk was released (swap.h); the members above still describe it */
    bool away : 1;     /* the chunk is not mapped here (away.h) */
    struct spw_extent *start; /* record of the last block that began here; the record may now be in
                                 use for another extent */
};

struct spw_backing {
    struct spw_granule *granules;
    uint64_t base, bytes, granule_bytes;
    uint64_t alias_bytes;
    unsigned granule_shift;
    struct spw_stock stock;
    uint64_t *kept;      /* bits of granules that should be stolen last (layout.h); NULL: none */
    bool takes_kept;     /* stealing now takes the kept granules as well */
    size_t broken;       /* number of broken granules */
    size_t lost;         /* number of lost granules */
    bool lost_announced; /* to_commit includes the lost granules */
    size_t swapped;      /* number of granules that are swapped out */
    size_t away;         /* number of granules whose chunks are away */
    size_t refusals;     /* how often in a row the backend has refused access */
    struct spw_vm *vm;
    struct spw_stream_queues *queues;
    struct spw_moves *moves; /* the moves in progress */
    struct spw_counters *counters;
    _Atomic uint64_t *to_commit; /* number of tasks for spw_pool_commit; NULL: no block is lazy */
};

/* Pointers are not owned. Sizes are multiples of the granule. The owner sets `moves` and
 * `to_commit` later. */
struct spw_backing_config {
    struct spw_vm *vm;
    struct spw_stream_queues *queues;
    struct spw_counters *counters;
    _Atomic uint64_t *host_chunks; /* number of granules in host chunks; NULL: not counted */
    uint64_t arena_bytes, granule_bytes;
    uint64_t alias_bytes; /* size of the addresses for second mappings, behind the arena
                             (alias.h) */
};

/* Reserves the addresses of the arena and of the aliases behind it, without backing. After a
 * failure, nothing is reserved. */
enum spw_err spw_pool_backing_init(struct spw_backing *backing,
                                   const struct spw_backing_config *config);

/* Frees the records. With `release`, first releases all chunks; there must be no pending work. */
void spw_pool_backing_fini(struct spw_backing *backing, bool release);

/* Subtracts the chunks from the device's counters. */
void spw_pool_backing_uncount(const struct spw_backing *backing, struct spw_counters *counters);

static inline size_t spw_pool_backing_index(const struct spw_backing *backing, uint64_t address)
{
    return (size_t)((address - backing->base) >> backing->granule_shift);
}

static inline uint64_t spw_pool_backing_address(const struct spw_backing *backing, size_t index)
{
    return backing->base + ((uint64_t)index << backing->granule_shift);
}

static inline bool spw_pool_backing_has(const struct spw_backing *backing, uint64_t address)
{
    return backing->granules[spw_pool_backing_index(backing, address)].chunk != 0;
}

/* Returns the number of granules of the device's spare chunks. */
static inline size_t spw_pool_backing_spare(const struct spw_backing *backing)
{
    return backing->stock.tiers[SPW_TIER_DEVICE].spare;
}

/* Return the first granule of the chunk that backs granule `index`, and the granule behind that
 * chunk. */
static inline size_t spw_pool_backing_chunk_begin(const struct spw_backing *backing, size_t index)
{
    return index - backing->granules[index].part;
}

static inline size_t spw_pool_backing_chunk_end(const struct spw_backing *backing, size_t index)
{
    return spw_pool_backing_chunk_begin(backing, index) +
           spw_pool_stock_size(backing->granules[index].order);
}

/* Returns the end of the run of chunks of one size that begins at granule `first`; at most `last`.
 * Either all of these chunks are away, or none. The backend handles such a run in one call. Both
 * granules begin a chunk. */
size_t spw_pool_backing_end_of_size(const struct spw_backing *backing, size_t first, size_t last);

/* Returns true if a chunk of the host is mapped, or may be mapped again after swapping. */
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

/* Changes the counts of host memory outside of chunks: `bytes` is the change of allocated memory,
 * `used` is the change of memory in use. */
void spw_pool_backing_count_host(struct spw_backing *backing, int64_t bytes, int64_t used);

/* The first returns true if a granule of [address, end) is on the host. The second returns the
 * number of bytes on the host. */
bool spw_pool_backing_on_host(const struct spw_backing *backing, uint64_t address, uint64_t end);
uint64_t spw_pool_backing_host_bytes(const struct spw_backing *backing, uint64_t address,
                                     uint64_t end);

/* Returns the number of bytes from `address` on, within [address, end), that are in one tier. */
uint64_t spw_pool_backing_run(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* The first marks a granule as broken permanently. The second marks the granules of the chunk that
 * begins at a granule as lost; they are broken as long as they are lost. */
void spw_pool_backing_mark_broken(struct spw_backing *backing, size_t granule);
void spw_pool_backing_mark_lost(struct spw_backing *backing, size_t granule, enum spw_lost lost);

/* Returns true if a granule of [address, end) is broken. */
bool spw_pool_backing_is_broken(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* Returns the number of granules that contain a byte of [address, end). */
static inline size_t spw_pool_backing_granules(const struct spw_backing *backing, uint64_t address,
                                               uint64_t end)
{
    return spw_pool_backing_index(backing, end - 1) - spw_pool_backing_index(backing, address) + 1;
}

/* Returns the number of granules of [address, end) without a chunk. */
size_t spw_pool_backing_missing(const struct spw_backing *backing, uint64_t address, uint64_t end);

/* Records a free of [address, end) as the last use of its granules. It is the newest free of
 * `queue`. */
void spw_pool_backing_note_free(struct spw_backing *backing, uint64_t address, uint64_t end,
                                const struct spw_stream_queue *queue);

/* Returns the number of device granules that spw_pool_backing_steal could take from [address,
 * end). */
size_t spw_pool_backing_stealable(const struct spw_backing *backing, uint64_t address,
                                  uint64_t end);

/* Unmaps whole chunks of a tier inside [address, end) whose work is complete, and makes them spare.
 * Begins at the high end, and stops when at least `most` granules are unmapped; the last chunk may
 * exceed `most`. Returns the number of granules unmapped. */
size_t spw_pool_backing_steal(struct spw_backing *backing, enum spw_tier tier, uint64_t address,
                              uint64_t end, size_t most);

/* Unmaps chunks of the device in [address, end) until `count` granules have no chunk. The range
 * consists of whole granules. The granules without a chunk are evenly spread if possible, and
 * include the last granule. Granules that spw_pool_backing_steal would not take are not taken here
 * either. Returns the number of granules without a chunk. */
size_t spw_pool_backing_make_holes(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t count);

/* Maps spare chunks at every granule of [address, end) that has no chunk, and makes them
 * accessible. If a chunk does not fit, it is released, and smaller chunks are created instead. Uses
 * chunks of the host for `host` of these granules, evenly spread. Uses more of them if the device
 * has no spare chunk left. Both tiers together must have enough spare chunks. After a failure, some
 * granules may have been backed; they are accessible unless marked broken. The next call gives
 * access to the broken ones. */
enum spw_err spw_pool_backing_fill(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t host);

/* Marks the granules of [address, end) to be stolen last. If `keep` is false, removes the mark.
 * Does nothing if the process has no memory. */
void spw_pool_backing_keep(struct spw_backing *backing, uint64_t address, uint64_t end, bool keep);

/* Records a held chunk, of tier `to` and of an order, for the granules from `granule` on. It
 * replaces one or more whole chunks, which become spare. */
void spw_pool_backing_exchange(struct spw_backing *backing, size_t granule, enum spw_tier to,
                               unsigned order, uint64_t chunk);

/* The two halves of an exchange. The first makes the recorded chunks of granules [first, last)
 * spare; the range consists of whole chunks. The second records a held chunk. */
void spw_pool_backing_give_up(struct spw_backing *backing, size_t first, size_t last);
void spw_pool_backing_install(struct spw_backing *backing, size_t granule, enum spw_tier to,
                              unsigned order, uint64_t chunk);

/* Marks the granules of the chunk that begins at a granule as exported. */
void spw_pool_backing_mark_exported(struct spw_backing *backing, size_t granule);

/* Unmaps and releases the exported chunk that begins at a granule. Its work must be complete. If
 * the backend refuses to unmap it, returns false and changes nothing. */
bool spw_pool_backing_release_exported(struct spw_backing *backing, size_t granule);

/* Gives access to a range of mapped chunks of `chunk_bytes` each, and counts refusals. */
enum spw_err spw_pool_backing_set_access(struct spw_backing *backing, uint64_t address,
                                         uint64_t bytes, uint64_t chunk_bytes);

/* Returns true if the backend has refused access several times in a row. An eviction would then
 * help no allocation. */
static inline bool spw_pool_backing_is_refused(const struct spw_backing *backing)
{
    return backing->refusals >= SPW_BACKING_REFUSALS;
}

/* Applies the backend's access list to all mappings in [address, end), except lost granules. */
enum spw_err spw_pool_backing_refresh_access(struct spw_backing *backing, uint64_t address,
                                             uint64_t end);
