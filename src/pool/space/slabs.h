/* Slabs: blocks in page-locked memory of the host, for devices that cannot map chunks of the host.
 *
 * A slab is one piece of such memory, at an address that the driver chooses. Blocks are cut from a
 * slab as from an arena. When they are freed, they wait in the order of their queues. They are
 * never moved. A slab without a block is kept until it is trimmed, because locking pages takes
 * long. The driver frees the memory with the context of its allocation. Unless that context is
 * likely to outlive the others, the slab is only for blocks of that context. The caller holds the
 * pool's lock, except for functions marked "No lock". */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/extents/bins.h"
#include "pool/extents/extent.h"

struct spw_address_map;
struct spw_stream_queue;

struct spw_slab {
    _Atomic uint64_t address, bytes; /* 0 bytes: there is no slab; read without the lock */
    uint64_t memory;                 /* the backend's handle */
    const void *context;             /* the end of this context frees the memory; NULL: unknown */
    bool shared;              /* for blocks of all contexts; otherwise its extents are in no bin */
    bool gone;                /* freed with its context: gets no new block and is never released */
    struct spw_extent *first; /* in address order, without gaps */
};

struct spw_slabs {
    struct spw_space *space;
    bool open;                   /* blocks may be in slabs */
    struct spw_slab *table;      /* exists until the pool ends; read without the lock */
    _Atomic size_t count;        /* number of entries ever used; read without the lock */
    uint64_t bytes;              /* size of all slabs */
    uint64_t live_bytes;         /* size of the blocks in slabs */
    struct spw_bins idle;        /* free extents of shared slabs, without pending work */
    struct spw_age_list pending; /* free extents with pending work */
};

/* Allocates the first slab, and tests whether the device can use it. After success, blocks may be
 * in slabs. */
enum spw_err spw_pool_slabs_open(struct spw_slabs *slabs);

/* Returns true if `address` is in a slab. Reliable only while the caller holds a block there. No
 * lock. */
bool spw_pool_slabs_own(const struct spw_slabs *slabs, uint64_t address);

/* Allocates a block of `bytes` for `queue` (NULL: usable on any stream at once) and `context`, in a
 * new slab if necessary. Returns SPW_E_NO_MEMORY if the host's limit, or the host itself, leaves no
 * room. */
enum spw_err spw_pool_slabs_alloc(struct spw_slabs *slabs, uint64_t bytes,
                                  const struct spw_stream_queue *queue, void *context,
                                  struct spw_extent **ret_block);

/* Frees a block in the order of `queue`. The caller has already raised the `seq` of the queue. */
void spw_pool_slabs_free(struct spw_slabs *slabs, struct spw_extent *block,
                         struct spw_stream_queue *queue);

/* Called when the driver is about to free the allocations of a context (NULL: of all contexts), or
 * has freed them. The blocks of the context must already be freed. Blocks of other contexts in this
 * memory have lost their content. With `release`, removes slabs without a block, and subtracts them
 * from the counters. */
void spw_pool_slabs_end_context(struct spw_slabs *slabs, const void *context, bool release);

/* Returns the extent in a slab that contains `address`; NULL if there is none. */
struct spw_extent *spw_pool_slabs_find(const struct spw_slabs *slabs, uint64_t address);

/* Releases every slab without a block or pending work. Returns the bytes released. */
uint64_t spw_pool_slabs_trim(struct spw_slabs *slabs);

/* Frees the records. With `release`, also frees the memory. */
void spw_pool_slabs_fini(struct spw_slabs *slabs, bool release);

/* Checks the invariants of slabs. Returns NULL, or a static sentence that names the broken one.
 * Adds the blocks to the two sums. */
const char *spw_pool_slabs_check(const struct spw_slabs *slabs,
                                 const struct spw_address_map *blocks, uint64_t *block_bytes,
                                 uint64_t *block_count);
