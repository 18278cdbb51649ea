/* Where chunks for new addresses come from: created within the growth allowance, stolen from free
 * memory elsewhere, created up to the limit, or created on the host; in this order.
 *
 * Memory that is free in a part of a chunk cannot be used elsewhere. So a chunk is at most a small
 * share of the memory that the pool has already, and of the room that is left on the device.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* One need for chunks: its circumstances, and what was learnt from the attempts so far. */
struct spw_chunk_need {
    uint64_t bytes;    /* of the block; 0: it is counted as live already */
    bool any_stream;   /* the block must be usable on every stream at once */
    bool device_full;  /* learnt: the driver refused to create more */
    bool wait_refused; /* learnt: the host may not wait now */
};

/* Returns how many granules the limit of a tier allows to be created. */
size_t spw_pool_chunks_room(const struct spw_pool *pool, enum spw_tier tier);

/* Creates chunks until `count` granules are spare, within the growth allowance; there may be fewer
 * after SPW_OK. Else the driver's error. Like all counts below, it is in granules. */
enum spw_err spw_pool_chunks_grow(struct spw_pool *pool, struct spw_chunk_need *need, size_t count);

/* Steals, then creates chunks up to the limit, until `count` are spare. SPW_E_AGAIN when waiting
 * for the device may help; else SPW_E_NO_MEMORY or SPW_E_LIMIT. */
enum spw_err spw_pool_chunks_reclaim_or_grow(struct spw_pool *pool, struct spw_chunk_need *need,
                                             size_t count);

/* Returns the order up to which small chunks are replaced by large ones while memory spills: a
 * small share of the device. */
unsigned spw_pool_chunks_join_order(const struct spw_pool *pool);

/* True if `err` says that the device has no memory and there is nothing left to wait for. */
bool spw_pool_chunks_exhausted(const struct spw_chunk_need *need, enum spw_err err);

/* Creates chunks of the host until, with the spare ones of the device, `count` are spare. False
 * when the host's limit, or the host, refuses. */
bool spw_pool_chunks_supplement(struct spw_pool *pool, size_t count);

/* Gets `count` spare chunks of the host. SPW_E_AGAIN when waiting for the device may help, else
 * SPW_E_NO_MEMORY. */
enum spw_err spw_pool_chunks_get_host(struct spw_pool *pool, size_t count);

/* Gets `count` spare chunks by all these means and by waiting, those of the host among them when
 * `spilling`. The lock may be released meanwhile. */
enum spw_err spw_pool_chunks_provide(struct spw_pool *pool, size_t count, bool spilling);
