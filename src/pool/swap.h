/* Swapping out: physical memory under blocks is released, and created anew at the same addresses.
 *
 * The caller saves the content before and writes it back after (spw_pool_read, spw_pool_write). It
 * guarantees that the device is idle and that nothing is submitted, allocated or moved from the
 * first chunk that is swapped out until all are back. Blocks may be freed meanwhile: their memory
 * comes back as free memory. Each function takes the pool's lock. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* Which chunks come back first: those that lie under a block which a graph keeps in its place
 * afterwards, then those under blocks that graphs name. */
enum spw_swap_rank { SPW_SWAP_KEPT_BY_GRAPH, SPW_SWAP_NAMED_BY_GRAPH, SPW_SWAP_OTHER };

/* The addresses of a chunk. */
struct spw_swap_chunk {
    uint64_t address, bytes;
    enum spw_tier tier;
    enum spw_swap_rank rank;
    uint64_t held; /* while it is out: not 0 if another chunk is mapped there, without access */
    enum spw_tier held_tier;
};

/* Finds the first chunk from `address` on, 0 or the end of a chunk that was found before, that may
 * be swapped out: one of a tier under large blocks that may move. False when there is none. */
bool spw_pool_swap_find(struct spw_pool *pool, uint64_t address, struct spw_swap_chunk *ret_chunk);

/* Unmaps a chunk that was found and releases it: its content is lost. The driver's error when it
 * refuses to unmap; then nothing has changed. */
enum spw_err spw_pool_swap_out(struct spw_pool *pool, const struct spw_swap_chunk *chunk);

/* Creates and maps memory of `tier`, within the tier's limit, where a chunk was swapped out. Its
 * content is undefined. SPW_E_NO_MEMORY when the tier has no room. When the driver gives no access
 * and does not unmap it again, *chunk tells, and the next call goes on with that memory, whatever
 * its `tier`. */
enum spw_err spw_pool_swap_in(struct spw_pool *pool, struct spw_swap_chunk *chunk,
                              enum spw_tier tier);

/* Copy between `bytes` of the process's memory and accessible memory of the pool. Block until the
 * copy is done; after an error it may still be under way, so the process's memory must stay. */
enum spw_err spw_pool_read(struct spw_pool *pool, void *to, uint64_t address, uint64_t bytes);
enum spw_err spw_pool_write(struct spw_pool *pool, uint64_t address, const void *from,
                            uint64_t bytes);
