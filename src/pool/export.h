/* Exports: a block gets chunks of its own that other processes can map. The addresses stay.
 *
 * The block's chunks, including chunks shared with other blocks, are replaced, a part of the block
 * at a time. Granules under the block get exportable chunks on the device; the other granules of
 * the replaced chunks get ordinary chunks of their old tier. A block that does not begin and end
 * with a granule shares its first and last granule with other memory, which is exported with it.
 *
 * An exported chunk never moves and is never stolen, and its free memory serves no new block: other
 * processes may still map it. It is released to the driver when no block is left on it and its work
 * is complete.
 *
 * The steps are those of a move (move.h), because the caller waits between them without the pool's
 * lock: begin, drain, copy, poll, commit, end. The caller guarantees that no work writes to device
 * memory between the start of the copies and commit, and that the device is idle during commit.
 *
 * Locking: each function takes the pool's lock; only one thread exports at a time, and no other
 * thread works with moves meanwhile. Part of pool.h. */
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

/* Begins the next part of the block with this address and id, unless all of it is exported
 * (*ret_done). SPW_E_NOT_OURS: there is no such block. SPW_E_UNSUPPORTED: the block is on the host
 * by a placement or page-locked, it has no memory yet, or the device has no exportable chunks.
 * SPW_E_INVAL: its physical memory is registered. SPW_E_AGAIN: a move of it, or an earlier step,
 * has not ended. SPW_E_NO_MEMORY, SPW_E_LIMIT: no room for the new chunks; or the driver's error.
 * On failure, and when done, no chunk is held. */
enum spw_err spw_pool_export_begin(struct spw_pool *pool, uint64_t address, uint64_t id,
                                   bool *ret_done);

/* SPW_OK when all work submitted to the device before the first call is done, SPW_E_AGAIN when it
 * is not. After SPW_OK the next call counts as the first. */
enum spw_err spw_pool_export_drain(struct spw_pool *pool);

/* The first enqueues the copies to the new chunks. The second returns SPW_OK when they are done,
 * SPW_E_AGAIN when they are not. */
enum spw_err spw_pool_export_copy(struct spw_pool *pool);
enum spw_err spw_pool_export_poll(struct spw_pool *pool);

/* Maps the new chunks in place. On failure the old chunks are back in place, or lost as after a
 * failed move. If a new chunk cannot be unmapped, the new chunks stay, and are lost. */
enum spw_err spw_pool_export_commit(struct spw_pool *pool);

/* Gives uncommitted chunks back. If copies are under way, the next begin gives them back instead,
 * and returns SPW_E_AGAIN until the copies are done. */
void spw_pool_export_end(struct spw_pool *pool);

/* Lists the chunks of an exported block, at most `most`, and the block's offset in the first chunk.
 * Returns their number; 0 when the block is not exported. */
size_t spw_pool_export_chunks(struct spw_pool *pool, uint64_t address,
                              struct spw_exported_chunk *ret_chunks, size_t most,
                              uint64_t *ret_offset);
