/* Swapping: physical memory under blocks is released, and later created at the same addresses.
 *
 * The caller saves the content before and writes it back after (spw_pool_read, spw_pool_write). It
 * guarantees that the device is idle, and that no work is submitted and no memory allocated or
 * moved from the first swap-out until all chunks are back. Blocks may be freed during that time:
 * their memory returns as free memory. Each function takes the pool's lock. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* The order of return: first chunks under a block that a graph keeps in place, then chunks under
 * blocks that graphs name. */
enum spw_swap_rank { SPW_SWAP_KEPT_BY_GRAPH, SPW_SWAP_NAMED_BY_GRAPH, SPW_SWAP_OTHER };

/* The addresses of a chunk. */
struct spw_swap_chunk {
    uint64_t address, bytes;
    enum spw_tier tier;
    enum spw_swap_rank rank;
    uint64_t held; /* while swapped out: not 0 if a new chunk is mapped here without access */
    enum spw_tier held_tier;
};

/* Finds the first chunk from `address` on that may be swapped out: a chunk under large blocks that
 * may move. `address` is 0 or the end of the last chunk found. False when there is none. */
bool spw_pool_swap_find(struct spw_pool *pool, uint64_t address, struct spw_swap_chunk *ret_chunk);

/* Unmaps and releases a chunk that was found: its content is lost. SPW_E_AGAIN, without effect,
 * when the driver refuses to unmap it. */
enum spw_err spw_pool_swap_out(struct spw_pool *pool, const struct spw_swap_chunk *chunk);

/* Creates and maps memory of `tier`, within the tier's limit, at the addresses of a chunk that was
 * swapped out. Its content is undefined. SPW_E_NO_MEMORY when the tier has no room. If the driver
 * gives no access and refuses to unmap the memory, chunk->held is set, and the next call continues
 * with that memory in any `tier`. */
enum spw_err spw_pool_swap_in(struct spw_pool *pool, struct spw_swap_chunk *chunk,
                              enum spw_tier tier);

/* Copy between `bytes` of the process's memory and accessible memory of the pool. Block until the
 * copy is done. After an error the copy may still be under way, so the process's memory must stay
 * allocated. */
enum spw_err spw_pool_read(struct spw_pool *pool, void *to, uint64_t address, uint64_t bytes);
enum spw_err spw_pool_write(struct spw_pool *pool, uint64_t address, const void *from,
                            uint64_t bytes);
