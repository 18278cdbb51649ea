/* Moves: the content of granules goes to chunks of the other tier and stays at its addresses.
 *
 * Pure mechanism, in steps, because the caller waits in between without the pool's lock:
 *   begin    chooses granules, pins them, and maps new chunks in the staging window
 *   copy     enqueues copies from the granules to the new chunks
 *   poll     tells whether the copies are done
 *   commit   puts the new chunks in the place of the old ones, at once
 *   end      gives back what was not committed
 * Between copy and commit the caller sees to it that nothing wrote to the granules since the copies
 * began, and that nothing the device still does at commit touches them: that is the gate's
 * business. A pinned granule is not stolen; its block may be freed and others allocated there,
 * which does no harm: the content is copied whatever it is.
 *
 * Two moves may be under way at once, of different granules: while one is exchanged the copies of
 * the other go on.
 *
 * Locking: each function takes the pool's lock; one thread at a time deals with moves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/backing.h"
#include "pool/pool.h"

/* Granules in one move, and so in its staging window; and moves at a time. */
enum { SPW_MOVE_GRANULES = SPW_BACKING_STAGING, SPW_MOVES = SPW_BACKING_WINDOWS };

/* A move: the pool's own, valid from begin until it has ended. */
struct spw_move;

/* A granule that is to be moved. */
struct spw_move_place {
    uint64_t block;   /* a block that lies on it begins here */
    uint64_t granule; /* its address */
    enum spw_tier to;
};

/* What to move, at most: the places in this order, both ways at once; or, without places, what the
 * pool chooses: to the host the blocks of the lowest priority, and of these the oldest; to the
 * device the other way round. */
struct spw_move_request {
    const struct spw_move_place *places; /* NULL: the pool chooses */
    size_t count;
    enum spw_tier to;
    uint64_t bytes;
    uint64_t least_age; /* only blocks that as many others were freed after, or more */
};

/* What a granule is to somebody who chooses. */
struct spw_granule_info {
    uint64_t block;   /* a block that lies on it begins here; 0: none does */
    int32_t priority; /* the highest of its blocks */
    uint8_t tier;     /* enum spw_tier */
    bool movable;
};

/* How many bytes more of blocks the device could hold, in whole granules, when the moves that are
 * under way are done; negative: fewer. */
int64_t spw_pool_room(struct spw_pool *pool);

/* Fills in the first `most` granules of large blocks, from *ret_address on. Returns how many.
 * *ret_room as above. What is being moved is shown where it goes to, and is not movable. */
size_t spw_pool_scan_granules(struct spw_pool *pool, struct spw_granule_info *infos, size_t most,
                              uint64_t *ret_address, int64_t *ret_room);

/* Called for a block with the pool's lock held; `age`: how many others were freed since. */
typedef void spw_pool_visitor(void *cookie, uint64_t address, uint64_t bytes, uint32_t site,
                              uint64_t age);

/* Tells of every large block there is. */
void spw_pool_each_large(struct spw_pool *pool, spw_pool_visitor *visit, void *cookie);

/* Where large blocks lie. No lock. */
void spw_pool_large_range(const struct spw_pool *pool, uint64_t *ret_address, uint64_t *ret_bytes,
                          uint64_t *ret_granule_bytes);

/* SPW_E_NO_MEMORY when there is nothing to move, or no memory to move it to; SPW_E_AGAIN when as
 * many moves as there can be are not over yet. On failure nothing is held. */
enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_request *request,
                                 struct spw_move **ret_move);

/* Tells what the move is of: at most SPW_MOVE_GRANULES places. Returns how many. */
size_t spw_pool_move_places(struct spw_pool *pool, const struct spw_move *move,
                            struct spw_move_place *ret_places);

/* Enqueues the copies; with `after_all` behind everything submitted so far. May be called again
 * when the ones before are done. */
enum spw_err spw_pool_move_copy(struct spw_pool *pool, struct spw_move *move, bool after_all);

/* SPW_OK when the copies are done, SPW_E_AGAIN when not. */
enum spw_err spw_pool_move_poll(struct spw_pool *pool, struct spw_move *move);

/* SPW_OK when everything that had been submitted to the device at the first call of this is done,
 * SPW_E_AGAIN when not. After a success it begins anew. */
enum spw_err spw_pool_move_drain(struct spw_pool *pool, struct spw_move *move);

/* Notes a hash of each granule; called when the device is at rest. */
enum spw_err spw_pool_move_hash(struct spw_pool *pool, struct spw_move *move);

/* Notes a hash of the copies of some granules: of one at least of each block in each run. Which one
 * changes with `turn`. The copies are done. */
enum spw_err spw_pool_move_sample(struct spw_pool *pool, struct spw_move *move, uint64_t turn);

/* Compares the same copies when they have been made again: *ret_granule is the first whose content
 * is another now, 0 if there is none. */
enum spw_err spw_pool_move_compare(struct spw_pool *pool, const struct spw_move *move,
                                   uint64_t *ret_granule);

/* Takes a granule out of the move: it stays as it is. */
void spw_pool_move_leave_out(struct spw_pool *pool, struct spw_move *move, uint64_t granule);

/* Puts the new chunks in place. Nothing uses what moves, the copies are done. *ret_bytes have
 * moved; on failure the granules from there on are as they were, but for such as cannot be reached
 * any more, because the seam refused to map them again or to give access: see the next two. */
enum spw_err spw_pool_move_commit(struct spw_pool *pool, struct spw_move *move,
                                  uint64_t *ret_bytes);

/* Tries again to give back what cannot be reached since a commit; its content is there still.
 * SPW_E_AGAIN while something is left: no other move begins before. To be called after a failed
 * commit, before anything is submitted that may use it; spw_pool_commit does it too. */
enum spw_err spw_pool_move_remap_lost(struct spw_pool *pool);

/* The first address that cannot be reached, and how many bytes in all; 0 when there is none. */
uint64_t spw_pool_move_lost(struct spw_pool *pool, uint64_t *ret_bytes);

/* The first address whose content is not what its hash says; 0 when all is well. */
uint64_t spw_pool_move_verify(struct spw_pool *pool, const struct spw_move *move);

/* Gives back chunks and pins; SPW_E_AGAIN while copies are under way: the pool does it later, when
 * it looks what has completed, or at the next begin. Does nothing when it has been done. */
enum spw_err spw_pool_move_end(struct spw_pool *pool, struct spw_move *move);

/* The same without doing it now: the pool does when it looks what has completed, or when memory is
 * short. */
void spw_pool_move_leave(struct spw_pool *pool, struct spw_move *move);

/* Nothing that is allocated now is ever moved: its addresses are in a graph. */
void spw_pool_fix_all(struct spw_pool *pool);
