/* Gets chunks for new addresses. The sources are tried in this order: creation within the growth
 * allowance, stealing from free memory at other addresses, creation up to the limit, creation on
 * the host.
 *
 * If a part of a chunk is free, its memory cannot be used at other addresses. A chunk is therefore
 * at most a small share of the pool's memory, and of the room left on the device.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* One need for chunks. It has the circumstances, and the results of the attempts so far. */
struct spw_chunk_need {
    uint64_t bytes;    /* size of the block; 0: the block already counts as live */
    bool any_stream;   /* every stream may use the block at once */
    bool device_full;  /* result: the driver refused to create more chunks */
    bool wait_refused; /* result: waiting on the host is not allowed now */
};

/* Creates chunks within the growth allowance until `count` granules are spare. Returns SPW_OK even
 * if fewer are spare; otherwise the driver's error. `count` is a number of granules, here and
 * below. */
enum spw_err spw_pool_chunks_grow(struct spw_pool *pool, struct spw_chunk_need *need, size_t count);

/* Steals chunks, and then creates chunks up to the limit, until `count` granules are spare. Returns
 * SPW_E_AGAIN if waiting for the device may help; otherwise SPW_E_NO_MEMORY or SPW_E_LIMIT. */
enum spw_err spw_pool_chunks_reclaim_or_grow(struct spw_pool *pool, struct spw_chunk_need *need,
                                             size_t count);

/* Returns true if `err` means that the device has no memory and that no wait can help. */
bool spw_pool_chunks_exhausted(const struct spw_chunk_need *need, enum spw_err err);

/* Creates chunks of the host until device and host together have `count` spare granules. Returns
 * false if the limit of the host, or the host itself, refuses. */
bool spw_pool_chunks_supplement(struct spw_pool *pool, size_t count);

/* Gets `count` spare granules of the host. Returns SPW_E_AGAIN if waiting for the device may help;
 * otherwise SPW_E_NO_MEMORY. */
enum spw_err spw_pool_chunks_get_host(struct spw_pool *pool, size_t count);

/* Gets `count` spare granules: creates, steals and waits for chunks of the device. With `spilling`,
 * also creates chunks of the host. May release the lock while it waits. */
enum spw_err spw_pool_chunks_provide(struct spw_pool *pool, size_t count, bool spilling);
