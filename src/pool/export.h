/* Exports: a block gets chunks of its own that other processes can map. The addresses stay.
 *
 * The block's chunks, and those that it shares with other blocks, are replaced, a part of the block
 * at a time: by exportable chunks under the block, and by others of the same tier beside it. What
 * is on the host comes to the device. Chunks are made of granules, so a block that does not begin
 * and end with a granule shares its first and last one with other memory, which is exported too.
 *
 * An exported chunk never moves and is never stolen, and free memory on it serves no new block:
 * other processes may still map it. When no block is left on it and its work is complete, it is
 * released to the driver.
 *
 * The steps are those of a move (move.h), because the caller waits between them without the pool's
 * lock: begin, drain, copy, poll, commit, end. The caller guarantees that nothing writes to the
 * device between the start of the copies and commit, and that it is idle during commit.
 *
 * Locking: each function takes the pool's lock; one thread at a time exports, while no other works
 * with moves. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct spw_pool;

/* A chunk that a block lies on. */
struct spw_exported_chunk {
    uint64_t chunk; /* the backend's handle */
    uint64_t bytes;
};

/* Begins the next part of the block with this address and id, unless all of it is exported
 * (*ret_done). SPW_E_NOT_OURS: there is no such block. SPW_E_UNSUPPORTED: a placement put it on the
 * host, or it has no memory yet. SPW_E_INVAL: physical memory under it is registered with others.
 * SPW_E_AGAIN: a move of it, or a step before, has not ended. SPW_E_NO_MEMORY, SPW_E_LIMIT: no room
 * for the new chunks; or the driver's error. On failure, and when done, nothing is held. */
enum spw_err spw_pool_export_begin(struct spw_pool *pool, uint64_t address, uint64_t id,
                                   bool *ret_done);

/* SPW_OK when everything submitted to the device before the first call is done, SPW_E_AGAIN when it
 * is not. After SPW_OK the next call is a first one again. */
enum spw_err spw_pool_export_drain(struct spw_pool *pool);

/* Enqueues the copies to the new chunks; and tells if they are done, SPW_E_AGAIN when not. */
enum spw_err spw_pool_export_copy(struct spw_pool *pool);
enum spw_err spw_pool_export_poll(struct spw_pool *pool);

/* Maps the new chunks in place. On failure the old ones are there as before, or lost as after a
 * failed move; or the new ones are lost, if one cannot be unmapped again. */
enum spw_err spw_pool_export_commit(struct spw_pool *pool);

/* Gives back what was not committed; while copies are under way, later: at the next begin, which
 * answers SPW_E_AGAIN until then. */
void spw_pool_export_end(struct spw_pool *pool);

/* Lists the chunks of an exported block, at most `most`, and where in the first one it begins.
 * Returns how many it has; 0 when it is not exported. */
size_t spw_pool_export_chunks(struct spw_pool *pool, uint64_t address,
                              struct spw_exported_chunk *ret_chunks, size_t most,
                              uint64_t *ret_offset);
