/* Exports: a block gets chunks of its own that other processes can map. Its addresses stay the
 * same.
 *
 * The block's chunks are replaced, one part of the block at a time. This includes chunks that the
 * block shares with other blocks. Granules under the block get exportable chunks on the device. The
 * other granules of the replaced chunks get ordinary chunks of their old tier. If a block does not
 * begin or end at the boundary of a granule, other memory in its first or last granule is exported
 * as well.
 *
 * An exported chunk never moves and is never stolen. Its free memory serves no new block, because
 * other processes may still map the chunk. The chunk is released to the driver when no block is on
 * it and its work is complete.
 *
 * The steps are those of a move (move.h), because the caller waits between them without the pool's
 * lock: begin, drain, copy, poll, commit, end. The caller guarantees that no work writes to device
 * memory between the start of the copies and commit, and that the device is idle during commit.
 *
 * Locking: each function takes the pool's lock. Only one thread exports at a time, and no other
 * thread may work with moves during that time. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct spw_pool;

/* A chunk under a block. */
struct spw_exported_chunk {
    uint64_t chunk; /* the backend's handle */
    uint64_t bytes;
};

/* Begins the next part of the block with this address and id. If all of the block is exported, sets
 * *ret_done instead. SPW_E_NOT_OURS: there is no such block. SPW_E_UNSUPPORTED: the block is on the
 * host by a placement, is page-locked, or has no memory yet; or the device has no exportable
 * chunks. SPW_E_INVAL: the block's physical memory is registered. SPW_E_AGAIN: a move of the block,
 * or an earlier step, has not ended. SPW_E_NO_MEMORY, SPW_E_LIMIT: there is no room for the new
 * chunks. Other errors are the driver's. After a failure, and when all is exported, no chunk is
 * held. */
enum spw_err spw_pool_export_begin(struct spw_pool *pool, uint64_t address, uint64_t id,
                                   bool *ret_done);

/* Returns SPW_OK if all work that was submitted to the device before the first call is done,
 * SPW_E_AGAIN if not. After SPW_OK, the next call counts as the first again. */
enum spw_err spw_pool_export_drain(struct spw_pool *pool);

/* The first enqueues the copies to the new chunks. The second returns SPW_OK if the copies are
 * done, SPW_E_AGAIN if not. */
enum spw_err spw_pool_export_copy(struct spw_pool *pool);
enum spw_err spw_pool_export_poll(struct spw_pool *pool);

/* Maps the new chunks in place of the old ones. After a failure, the old chunks are mapped again,
 * or are lost as after a failed move. If a new chunk cannot be unmapped, all new chunks stay, and
 * are lost. */
enum spw_err spw_pool_export_commit(struct spw_pool *pool);

/* Gives uncommitted chunks back. If copies are still in progress, the next begin gives the chunks
 * back instead; it returns SPW_E_AGAIN until the copies are done. */
void spw_pool_export_end(struct spw_pool *pool);

/* Lists the chunks of an exported block, at most `most`, and the block's offset in the first chunk.
 * Returns the number of chunks; 0 if the block is not exported. */
size_t spw_pool_export_chunks(struct spw_pool *pool, uint64_t address,
                              struct spw_exported_chunk *ret_chunks, size_t most,
                              uint64_t *ret_offset);
