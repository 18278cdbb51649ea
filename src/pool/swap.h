/* Swapping: physical memory under blocks is released, and later created again at the same
 * addresses.
 *
 * The caller saves the content before a swap-out and writes it back after the swap-in
 * (spw_pool_read, spw_pool_write). From the first swap-out until all chunks are back, the caller
 * guarantees that the device is idle, that no work is submitted, and that no memory is allocated or
 * moved. Blocks may be freed during that time; their memory comes back as free memory. Each
 * function takes the pool's lock. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* The order in which chunks should come back: first chunks under a block that a graph keeps in
 * place, then chunks under blocks that graphs name. */
enum spw_swap_rank { SPW_SWAP_KEPT_BY_GRAPH, SPW_SWAP_NAMED_BY_GRAPH, SPW_SWAP_OTHER };

/* The addresses of a chunk. */
struct spw_swap_chunk {
    uint64_t address, bytes;
    enum spw_tier tier;
    enum spw_swap_rank rank;
    uint64_t held; /* while swapped out: not 0 if a new chunk is mapped here but has no access */
    enum spw_tier held_tier;
};

/* Finds the first chunk from `address` on that may be swapped out. This is a chunk under large
 * blocks that may move. `address` is 0, or the end of the previous chunk found. Returns false if
 * there is none. */
bool spw_pool_swap_find(struct spw_pool *pool, uint64_t address, struct spw_swap_chunk *ret_chunk);

/* Unmaps and releases a chunk that was found. Its content is lost. If the driver refuses to unmap
 * the chunk, returns SPW_E_AGAIN and changes nothing. */
enum spw_err spw_pool_swap_out(struct spw_pool *pool, const struct spw_swap_chunk *chunk);

/* Creates memory of `tier` within the tier's limit, and maps it at the addresses of a chunk that
 * was swapped out. The content is undefined. Returns SPW_E_NO_MEMORY if the tier has no room. If
 * the driver gives no access and also refuses to unmap the memory, sets chunk->held; the next call
 * then continues with that memory, whatever its `tier`. */
enum spw_err spw_pool_swap_in(struct spw_pool *pool, struct spw_swap_chunk *chunk,
                              enum spw_tier tier);

/* Copy between the process's memory and accessible memory of the pool, and wait until the copy is
 * done. After an error the copy may still be in progress, so the process's memory must stay
 * allocated. */
enum spw_err spw_pool_read(struct spw_pool *pool, void *to, uint64_t address, uint64_t bytes);
enum spw_err spw_pool_write(struct spw_pool *pool, uint64_t address, const void *from,
                            uint64_t bytes);
