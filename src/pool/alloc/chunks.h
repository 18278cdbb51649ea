/* The sources of chunks for new addresses, in this order: creation within the growth allowance,
 * stealing from free memory elsewhere, creation up to the limit, creation on the host.
 *
 * Free memory in a part of a chunk cannot be used elsewhere. So a chunk is at most a small share of
 * the pool's memory, and of the room left on the device.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* One need for chunks: its circumstances, and the results of the attempts so far. */
struct spw_chunk_need {
    uint64_t bytes;    /* of the block; 0: the block already counts as live */
    bool any_stream;   /* every stream may use the block at once */
    bool device_full;  /* result: the driver refused to create more */
    bool wait_refused; /* result: the host may not wait now */
};

/* Creates chunks within the growth allowance until `count` granules are spare. Returns SPW_OK even
 * if fewer are spare, or the driver's error. This count and those below are in granules. */
enum spw_err spw_pool_chunks_grow(struct spw_pool *pool, struct spw_chunk_need *need, size_t count);

/* Steals, then creates chunks up to the limit, until `count` are spare. SPW_E_AGAIN when waiting
 * for the device may help; otherwise SPW_E_NO_MEMORY or SPW_E_LIMIT. */
enum spw_err spw_pool_chunks_reclaim_or_grow(struct spw_pool *pool, struct spw_chunk_need *need,
                                             size_t count);

/* True if `err` means that the device has no memory and no wait can help. */
bool spw_pool_chunks_exhausted(const struct spw_chunk_need *need, enum spw_err err);

/* Creates chunks of the host until device and host together have `count` spare granules. False when
 * the host's limit, or the host, refuses. */
bool spw_pool_chunks_supplement(struct spw_pool *pool, size_t count);

/* Gets `count` spare chunks of the host. SPW_E_AGAIN when waiting for the device may help,
 * otherwise SPW_E_NO_MEMORY. */
enum spw_err spw_pool_chunks_get_host(struct spw_pool *pool, size_t count);

/* Gets `count` spare granules: creates, steals and waits for chunks of the device; when `spilling`,
 * also creates chunks of the host. May release the lock while it waits. */
enum spw_err spw_pool_chunks_provide(struct spw_pool *pool, size_t count, bool spilling);
