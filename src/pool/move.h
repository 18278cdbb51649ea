/* Moves: the content of granules is copied to chunks of the other tier; the addresses stay.
 *
 * Pure mechanism, in steps, because the caller waits between them without the pool's lock:
 *   begin    chooses granules, pins them, and gets new chunks
 *   copy     enqueues copies from the granules to the new chunks
 *   poll     tells whether the copies are done
 *   commit   maps the new chunks in place of the old ones
 *   end      gives back what was not committed
 * The caller guarantees that nothing writes to the granules between the start of the copies and
 * commit, and that no device work touches them during commit. A granule moves with all others of
 * its chunk, to a chunk of the same size. A pinned granule is not stolen for other allocations. Its
 * block may be freed and others allocated there: the copy is of the granule, not of the block.
 *
 * Two moves, of different granules, may be under way at once, so that one can be committed while
 * the other is copied.
 *
 * Locking: each function takes the pool's lock unless it says "no lock"; one thread at a time works
 * with moves. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* Granules in one move; moves at a time; parts of a move, at most. */
enum { SPW_MOVE_GRANULES = 256, SPW_MOVES = 2, SPW_MOVE_PARTS = 8 };

/* A move: owned by the pool, valid from begin until it has ended. */
struct spw_move;

/* A granule to move. */
struct spw_move_place {
    uint64_t block;   /* start of a block that lies on it */
    uint64_t granule; /* its address */
    enum spw_tier to;
};

/* Some of a pool's blocks: those for which every member holds that is set. */
struct spw_block_filter {
    uint8_t account;       /* blocks of this account; 0: of any */
    const uint64_t *sites; /* blocks of the call sites whose bits are set; NULL: of any. Not owned
                            */
    uint32_t site_count;   /* bits in `sites`; other sites do not belong to them */
};

/* The granules to move, at most. With `places`: those, in this order, in both directions. Without:
 * the pool chooses, to the host the blocks of lowest priority and of these the least recently used,
 * to the device the opposite order. */
struct spw_move_request {
    const struct spw_move_place *places; /* NULL: the pool chooses */
    size_t count;
    enum spw_tier to;
    uint64_t bytes;
    uint64_t least_age; /* only blocks since whose last use at least so many blocks were freed */
    struct spw_block_filter only; /* the blocks to choose from */
};

/* ---- finding granules to move ---- */

/* State of one granule. The first one of a chunk stands for all of them. */
struct spw_granule_info {
    uint64_t block;   /* start of a block that lies on it, or on the chunk; 0: none */
    int32_t priority; /* highest of its blocks, or of those of the chunk */
    uint8_t tier;     /* enum spw_tier; the target while it is being moved */
    uint8_t part;     /* number of the granule in its chunk */
    uint8_t count;    /* granules of the chunk */
    bool movable;     /* false while it is being moved */
};

/* Returns how many more bytes of blocks, in whole granules, the device can hold when the moves
 * under way are done; negative when it holds too many. */
int64_t spw_pool_room(struct spw_pool *pool);

/* Writes the state of the first granules of large blocks, at most `most`, of which the first is at
 * *ret_address. *ret_room is as spw_pool_room. Returns the number of granules. */
size_t spw_pool_scan_granules(struct spw_pool *pool, struct spw_granule_info *infos, size_t most,
                              uint64_t *ret_address, int64_t *ret_room);

/* Lists a granule of each chunk on the host that may move to the device and lies under the blocks
 * at these addresses, until the chunks have SPW_MOVE_GRANULES; small blocks, which never move, are
 * left out. Returns how many it has listed, and in *ret_bytes the size of their chunks. */
size_t spw_pool_find_on_host(struct spw_pool *pool, const uint64_t *addresses, size_t count,
                             struct spw_move_place ret_places[SPW_MOVE_GRANULES],
                             uint64_t *ret_bytes);

/* Called for a block with the pool's lock held; `age`: blocks freed since its last use. */
typedef void spw_pool_visitor(void *cookie, uint64_t address, uint64_t bytes, uint32_t site,
                              uint64_t age);

/* Calls `visit` for every large block. */
void spw_pool_each_large(struct spw_pool *pool, spw_pool_visitor *visit, void *cookie);

/* Tells the range of addresses where large blocks lie. No lock. */
void spw_pool_large_range(const struct spw_pool *pool, uint64_t *ret_address, uint64_t *ret_bytes,
                          uint64_t *ret_granule_bytes);

/* Fixes every block that is live now, for no reason of enum spw_fixed_reason, and leaves moves
 * under way nothing to commit. The second function ends that. */
void spw_pool_fix_all(struct spw_pool *pool);
void spw_pool_release_all(struct spw_pool *pool);

/* From now on blocks that executable graphs keep in place may move, too, and what graphs name goes
 * to the device first and to the host last. Or (`may` is false) that ends. For while no graph is
 * launched. */
void spw_pool_let_graphs_move(struct spw_pool *pool, bool may);

/* ---- a move ---- */

/* Begins a move. SPW_E_NOTHING when there is nothing to move; SPW_E_NO_MEMORY when there is no
 * memory to move it to; SPW_E_AGAIN when SPW_MOVES moves are under way, or when granules that an
 * earlier move lost cannot be mapped again yet. On failure nothing is held. */
enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_request *request,
                                 struct spw_move **ret_move);

/* Lists the granules of a move, at most SPW_MOVE_GRANULES; `block` is not set. Returns how many. */
size_t spw_pool_move_places(struct spw_pool *pool, const struct spw_move *move,
                            struct spw_move_place *ret_places);

/* Likewise those that were switched so far. */
size_t spw_pool_move_committed(struct spw_pool *pool, const struct spw_move *move,
                               struct spw_move_place *ret_places);

/* Enqueues the copies; with `after_all` behind everything submitted so far. May be called again
 * when the earlier copies are done. */
enum spw_err spw_pool_move_copy(struct spw_pool *pool, struct spw_move *move, bool after_all);

/* Likewise, in parts of about the same size, so that one can be committed while the next ones are
 * being copied. *ret_parts is how many there are. */
enum spw_err spw_pool_move_copy_parts(struct spw_pool *pool, struct spw_move *move,
                                      size_t *ret_parts);

/* SPW_OK when the copies are done, SPW_E_AGAIN when they are not; and those of one part. */
enum spw_err spw_pool_move_poll(struct spw_pool *pool, struct spw_move *move);
enum spw_err spw_pool_move_poll_part(struct spw_pool *pool, struct spw_move *move, size_t part);

/* SPW_OK when everything submitted to the device before the first call is done, SPW_E_AGAIN when it
 * is not. After SPW_OK the next call is a first one again. */
enum spw_err spw_pool_move_drain(struct spw_pool *pool, struct spw_move *move);

/* Takes the granule at address `granule` out of the move; it stays as it is. */
void spw_pool_move_leave_out(struct spw_pool *pool, struct spw_move *move, uint64_t granule);

/* Maps the new chunks in place. The copies must be done and nothing may use the granules.
 * *ret_bytes is how much has moved. On failure the remaining granules are as before, except those
 * that are lost: neither chunk could be mapped and made accessible again (see the next two). */
enum spw_err spw_pool_move_commit(struct spw_pool *pool, struct spw_move *move,
                                  uint64_t *ret_bytes);

/* Likewise for one part, after spw_pool_move_copy_parts. */
enum spw_err spw_pool_move_commit_part(struct spw_pool *pool, struct spw_move *move, size_t part,
                                       uint64_t *ret_bytes);

/* Retries to map what a commit lost; the content is still there. SPW_E_AGAIN while something is
 * lost, and then no other move begins. Call it after a failed commit, before work that may use the
 * granules is submitted; spw_pool_commit calls it too. */
enum spw_err spw_pool_move_remap_lost(struct spw_pool *pool);

/* Returns the first lost address, 0 when there is none; *ret_bytes is how much is lost. */
uint64_t spw_pool_move_lost(struct spw_pool *pool, uint64_t *ret_bytes);

/* Gives back chunks and pins. SPW_E_AGAIN while copies are under way: the pool then does it when it
 * next polls fences, or at the next begin. Does nothing the second time. */
enum spw_err spw_pool_move_end(struct spw_pool *pool, struct spw_move *move);

/* Likewise, but always later: when the pool next polls fences. */
void spw_pool_move_leave(struct spw_pool *pool, struct spw_move *move);

/* ---- validation ---- */

/* Notes a hash of each granule. The device must be idle. */
enum spw_err spw_pool_move_hash(struct spw_pool *pool, struct spw_move *move);

/* Returns the first address whose content differs from its hash; 0 when all agree. */
uint64_t spw_pool_move_verify(struct spw_pool *pool, const struct spw_move *move);

/* Notes a hash of the copies of some granules, at least one per block and run of neighbours; `turn`
 * varies the choice. The copies must be done. */
enum spw_err spw_pool_move_sample(struct spw_pool *pool, struct spw_move *move, uint64_t turn);

/* Compares the same copies after they were made again: *ret_granule is the first that differs, 0
 * when all agree. */
enum spw_err spw_pool_move_compare(struct spw_pool *pool, const struct spw_move *move,
                                   uint64_t *ret_granule);
