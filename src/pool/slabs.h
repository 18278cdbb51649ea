/* Slabs: blocks in page-locked memory of the host, for devices that cannot map chunks of it.
 *
 * A slab is one piece of such memory, at whatever address the driver gives; blocks are cut from it
 * like from an arena, wait in the order of their queues when they are freed, and are never moved. A
 * slab without a block is kept until it is trimmed, for to lock pages takes long. Caller holds the
 * pool's lock, but where it says no lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/bins.h"
#include "pool/extent.h"

struct spw_pool;
struct spw_stream_queue;

/* In place of a class of heaps in an extent: it lies in a slab. */
enum { SPW_HEAP_SLAB = 0xff };

struct spw_slab {
    _Atomic uint64_t address, bytes; /* 0 bytes: none; read without the lock */
    uint64_t memory;                 /* what the seam knows it by */
    struct spw_extent *first;        /* by address, without gaps */
};

struct spw_slabs {
    struct spw_slab *table;      /* NULL: there are none, and never will be */
    _Atomic size_t count;        /* entries that were ever used; read without the lock */
    uint64_t bytes;              /* of all */
    uint64_t live_bytes;         /* of the blocks in them */
    struct spw_bins idle;        /* free extents with no pending work */
    struct spw_age_list pending; /* the others */
};

/* Finds out with a first slab whether blocks can be in slabs; if so, they may be from now on. */
enum spw_err spw_pool_slabs_open(struct spw_pool *pool);

/* Whether `address` lies in a slab. No lock: the caller holds a block there if it does. */
bool spw_pool_slabs_own(const struct spw_slabs *slabs, uint64_t address);

/* A block of `bytes` for `queue` (NULL: to be used anywhere at once), in a new slab if need be.
 * SPW_E_NO_MEMORY when the host's limit, or the host, leaves no room. */
enum spw_err spw_pool_slabs_alloc(struct spw_pool *pool, uint64_t bytes,
                                  const struct spw_stream_queue *queue,
                                  struct spw_extent **ret_block);

/* Frees a block in the order of `queue`, whose count the caller has raised. */
void spw_pool_slabs_free(struct spw_pool *pool, struct spw_extent *block,
                         struct spw_stream_queue *queue);

/* The extent in a slab that contains `address`; NULL when there is none. */
struct spw_extent *spw_pool_slabs_find(const struct spw_slabs *slabs, uint64_t address);

/* Gives back every slab without a block or pending work. Returns the bytes. */
uint64_t spw_pool_slabs_trim(struct spw_pool *pool);

/* Frees the records; with `release`, gives back the memory as well. */
void spw_pool_slabs_fini(struct spw_pool *pool, bool release);

/* For the check of the pool: NULL when all is well here, else a static sentence. Adds the blocks.
 */
const char *spw_pool_slabs_check(const struct spw_pool *pool, uint64_t *block_bytes,
                                 uint64_t *block_count);
