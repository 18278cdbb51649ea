/* The stock of chunks: creates and releases physical memory, and keeps the unmapped chunks.
 *
 * A chunk is a piece of physical memory, on the device or on the host, of 1, 2, 4 ... granules: 2
 * to the power of its order. A driver call costs about as much for a large chunk as for a small
 * one. However, a chunk can be mapped, unmapped and moved only as a whole. A chunk is mapped in the
 * arena (backing.h), or held by a move, or spare.
 *
 * Amounts are in granules, except those named "bytes". The caller holds the pool's lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "pool/memory/alias.h"
#include "pool/vm_ops.h"

/* The spare chunks of one order. They are not mapped in the arena. */
struct spw_spare_chunks {
    uint64_t *chunks;
    size_t count, capacity;
    size_t existing; /* number of all chunks of this order: mapped, spare or held */
};

/* The chunks of one tier. */
struct spw_stock_tier {
    struct spw_spare_chunks orders[SPW_CHUNK_ORDERS];
    size_t spare;
    size_t held;  /* held by moves: neither mapped in the arena nor spare */
    size_t total; /* all chunks: mapped, spare or held */
};

/* The owner sets the members below `tiers`. Pointers are not owned. */
struct spw_stock {
    struct spw_stock_tier tiers[SPW_TIER_COUNT];
    struct spw_vm *vm;
    uint64_t granule_bytes;
    struct spw_aliases aliases;
    unsigned largest_order;   /* largest order of chunks to create */
    unsigned merge_order;     /* small spare chunks may be merged into chunks up to this order */
    uint32_t growth_permille; /* free but backed memory to keep, as a share of the live peak */
    /* The most bytes of each tier, including foreign charges. The limit of the device is for memory
     * in chunks. The limit of the host is for memory in chunks and page-locked memory (0: no host
     * tier). */
    uint64_t limits[SPW_TIER_COUNT];
    bool bounded; /* vm_ops.room bounds the device as well */
    struct spw_counters *counters;
    _Atomic uint64_t *host_chunks; /* number of granules in host chunks; NULL: not counted */
};

/* Returns the number of granules in a chunk of an order. */
static inline size_t spw_pool_stock_size(unsigned order)
{
    return (size_t)1 << order;
}

/* Returns the order of the largest chunk of at most `granules` granules, which must not be 0. */
static inline unsigned spw_pool_stock_order(size_t granules)
{
    unsigned order = 63u - (unsigned)__builtin_clzll(granules);

    return order < SPW_CHUNK_ORDERS ? order : SPW_CHUNK_ORDERS - 1;
}

/* Returns the size of all chunks of the device, in bytes. */
static inline uint64_t spw_pool_stock_committed(const struct spw_stock *stock)
{
    return stock->tiers[SPW_TIER_DEVICE].total * stock->granule_bytes;
}

/* Returns the limit of a tier. If the pool is bounded, memory that other processes have taken
 * lowers the limit of the device. */
uint64_t spw_pool_stock_limit(const struct spw_stock *stock, enum spw_tier tier);

/* Returns the number of granules that may be created within the limit of a tier. */
size_t spw_pool_stock_room(const struct spw_stock *stock, enum spw_tier tier);

/* Returns the largest order for joining chunks while memory spills. It is a small share of the
 * limit. */
unsigned spw_pool_stock_join_order(const struct spw_stock *stock);

/* Creates one spare chunk. */
enum spw_err spw_pool_stock_create(struct spw_stock *stock, enum spw_tier tier, unsigned order);

/* Releases spare chunks of a tier, at most `most` granules in total. Returns the number of granules
 * released. If only larger chunks are spare, one of them is first replaced by smaller ones. */
size_t spw_pool_stock_release(struct spw_stock *stock, enum spw_tier tier, size_t most);

/* Forgets the chunks of a tier, and frees their records. */
void spw_pool_stock_fini(struct spw_stock *stock, enum spw_tier tier);

/* ---- for mapping chunks in the arena ---- */

/* _put adds a chunk that was mapped to the spare chunks. _take removes a spare chunk of an order,
 * which must have one. */
void spw_pool_stock_put(struct spw_stock *stock, enum spw_tier tier, unsigned order,
                        uint64_t chunk);
uint64_t spw_pool_stock_take(struct spw_stock *stock, enum spw_tier tier, unsigned order);

/* Finds the largest order that has a spare chunk of at most `most` granules. If all spare chunks
 * are larger, one of them is replaced by smaller ones. If all are much smaller, and `merge_order`
 * allows it, some of them are replaced by a larger one. */
enum spw_err spw_pool_stock_find(struct spw_stock *stock, enum spw_tier tier, size_t most,
                                 unsigned *ret_order);

/* Records that the backend refused host memory that the limit allowed. */
void spw_pool_stock_note_wall(struct spw_counters *counters);

/* Updates the peak of reserved memory. */
void spw_pool_stock_note_reserved(struct spw_counters *counters);

/* ---- for moves, which map chunks themselves ---- */

/* Holds a spare chunk of a tier and an order. *ret_alias is the second address of the chunk. If
 * there is no such chunk, there are three ways to get one: a larger chunk is replaced by smaller
 * ones, a chunk is created if it has at most `may_add` granules, or smaller chunks are replaced by
 * one. */
enum spw_err spw_pool_stock_hold(struct spw_stock *stock, enum spw_tier tier, unsigned order,
                                 size_t may_add, uint64_t *ret_chunk, uint64_t *ret_alias);

/* Creates an exportable chunk of the device and holds it. *ret_alias is the second address of the
 * chunk. The chunk never becomes spare, so no other block gets it. */
enum spw_err spw_pool_stock_hold_exportable(struct spw_stock *stock, unsigned order,
                                            uint64_t *ret_chunk, uint64_t *ret_alias);

/* Releases an exportable chunk, which must be mapped only at its alias. If the backend refuses, the
 * chunk stays held permanently. */
void spw_pool_stock_discard(struct spw_stock *stock, unsigned order, uint64_t chunk);

/* Gives a held chunk back. */
void spw_pool_stock_unhold(struct spw_stock *stock, enum spw_tier tier, unsigned order,
                           uint64_t chunk);
