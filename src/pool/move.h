/* Moves: the content of granules is copied to chunks of the other tier; the addresses stay.
 *
 * Pure mechanism, in steps, because the caller waits between them without the pool's lock:
 *   begin    chooses granules, pins them, and gets new chunks
 *   copy     enqueues copies from the granules to the new chunks
 *   poll     asks whether the copies are done
 *   commit   maps the new chunks in place of the old ones
 *   end      gives uncommitted chunks back
 * The caller guarantees that no work writes to the granules between the start of the copies and
 * commit, and that no device work touches them during commit. All granules of a chunk move
 * together. The new chunk has the same size, or replaces several neighbouring chunks. A pinned
 * granule is not stolen for other allocations. Its block may be freed and other blocks allocated on
 * it, since the granule is copied, not the block.
 *
 * Two moves of different granules may be under way at once, so that one can be committed while the
 * other is copied.
 *
 * Locking: each function takes the pool's lock unless marked "No lock"; one thread at a time works
 * with moves. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* The most granules in one move, moves at a time, and parts of a move. */
enum { SPW_MOVE_GRANULES = 256, SPW_MOVES = 2, SPW_MOVE_PARTS = 8 };

/* A move: owned by the pool, valid from its begin to its end. */
struct spw_move;

/* A granule to move. */
struct spw_move_place {
    uint64_t block;   /* start of a block on it */
    uint64_t granule; /* address of the granule */
    enum spw_tier to;
};

/* Selects blocks of a pool: every member that is set must hold. */
struct spw_block_filter {
    uint8_t account;       /* blocks of this account; 0: of every account */
    const uint64_t *sites; /* bits of call sites; NULL: all sites. Not owned */
    uint32_t site_count;   /* bits in `sites`; other sites are not selected */
};

/* The most granules to move. With `places`: these granules in this order, in both directions.
 * Without: the pool chooses granules to move to tier `to`. Blocks of low priority move to the host
 * first, among equals the least recently used; to the device they move in the opposite order. */
struct spw_move_request {
    const struct spw_move_place *places; /* NULL: the pool chooses */
    size_t count;
    enum spw_tier to;
    uint64_t bytes;
    uint64_t least_age;           /* only blocks whose last use is at least so many frees ago */
    struct spw_block_filter only; /* the blocks to choose from */
};

/* ---- finding granules to move ---- */

/* State of one granule. The first granule of a chunk has the state of the chunk. */
struct spw_granule_info {
    uint64_t block;   /* start of a block on the granule or chunk; 0: none */
    int32_t priority; /* highest of the blocks on the granule or chunk */
    uint8_t tier;     /* enum spw_tier; during a move the target */
    uint8_t part;     /* number of the granule in its chunk */
    uint8_t count;    /* granules of the chunk */
    bool movable;     /* false during a move */
};

/* Returns the bytes of blocks, in whole granules, that the device can hold in addition when the
 * moves under way are done; negative if the blocks exceed the device. */
int64_t spw_pool_room(struct spw_pool *pool);

/* Writes the states of at most `most` granules, beginning with the first granule of the heap of
 * large blocks, whose address is *ret_address. *ret_room is as returned by spw_pool_room. Returns
 * the number of granules. */
size_t spw_pool_scan_granules(struct spw_pool *pool, struct spw_granule_info *infos, size_t most,
                              uint64_t *ret_address, int64_t *ret_room);

/* Lists one granule of each chunk on the host that is under a block at one of these addresses and
 * may move to the device. Stops when the chunks have SPW_MOVE_GRANULES granules. Leaves out small
 * blocks, which never move. Returns the number listed; *ret_bytes is the size of all these
 * chunks. */
size_t spw_pool_find_on_host(struct spw_pool *pool, const uint64_t *addresses, size_t count,
                             struct spw_move_place ret_places[SPW_MOVE_GRANULES],
                             uint64_t *ret_bytes);

/* Called for a block with the pool's lock held; `age`: blocks freed since its last use. */
typedef void spw_pool_visitor(void *cookie, uint64_t address, uint64_t bytes, uint32_t site,
                              uint64_t age);

/* Calls `visit` for every large block. */
void spw_pool_each_large(struct spw_pool *pool, spw_pool_visitor *visit, void *cookie);

/* Returns the range of addresses of large blocks. No lock. */
void spw_pool_large_range(const struct spw_pool *pool, uint64_t *ret_address, uint64_t *ret_bytes,
                          uint64_t *ret_granule_bytes);

/* The first fixes every live block, without setting a reason of enum spw_fixed_reason, and takes
 * all items out of the moves under way. The second undoes the fixing. */
void spw_pool_fix_all(struct spw_pool *pool);
void spw_pool_release_all(struct spw_pool *pool);

/* With `may`, blocks that executable graphs keep in place may move, and blocks that graphs name
 * move to the device first and to the host last. Without `may`, ends that state, during which no
 * graph is launched. */
void spw_pool_let_graphs_move(struct spw_pool *pool, bool may);

/* ---- a move ---- */

/* Begins a move. SPW_E_NOTHING when no granule can move; SPW_E_NO_MEMORY when the target has no
 * memory; SPW_E_AGAIN when SPW_MOVES moves are under way, or when granules that an earlier move
 * lost cannot be mapped yet. On failure no chunk is held. */
enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_request *request,
                                 struct spw_move **ret_move);

/* Lists the granules of a move, at most SPW_MOVE_GRANULES; `block` stays 0. Returns the number. */
size_t spw_pool_move_places(struct spw_pool *pool, const struct spw_move *move,
                            struct spw_move_place *ret_places);

/* Lists the granules that were committed so far, in the same way. */
size_t spw_pool_move_committed(struct spw_pool *pool, const struct spw_move *move,
                               struct spw_move_place *ret_places);

/* Enqueues the copies; with `after_all` behind all work submitted so far. May be called again when
 * the earlier copies are done. */
enum spw_err spw_pool_move_copy(struct spw_pool *pool, struct spw_move *move, bool after_all);

/* Enqueues the copies in *ret_parts parts of about the same size, so that one part can be committed
 * while later parts are copied. */
enum spw_err spw_pool_move_copy_parts(struct spw_pool *pool, struct spw_move *move,
                                      size_t *ret_parts);

/* SPW_OK when the copies, or the copies of one part, are done; SPW_E_AGAIN when they are not. */
enum spw_err spw_pool_move_poll(struct spw_pool *pool, struct spw_move *move);
enum spw_err spw_pool_move_poll_part(struct spw_pool *pool, struct spw_move *move, size_t part);

/* SPW_OK when all work submitted to the device before the first call is done, SPW_E_AGAIN when it
 * is not. After SPW_OK the next call counts as the first. */
enum spw_err spw_pool_move_drain(struct spw_pool *pool, struct spw_move *move);

/* Takes the granule at an address, and all granules that share its new chunk, out of the move. */
void spw_pool_move_leave_out(struct spw_pool *pool, struct spw_move *move, uint64_t granule);

/* Maps the new chunks in place. The copies must be done, and no work may use the granules.
 * *ret_bytes is the number of bytes moved. On failure the remaining granules are as before, or
 * lost: neither chunk could be mapped and made accessible (see spw_pool_move_remap_lost). */
enum spw_err spw_pool_move_commit(struct spw_pool *pool, struct spw_move *move,
                                  uint64_t *ret_bytes);

/* Commits one part, after spw_pool_move_copy_parts. */
enum spw_err spw_pool_move_commit_part(struct spw_pool *pool, struct spw_move *move, size_t part,
                                       uint64_t *ret_bytes);

/* Retries to map lost granules; their content is intact. SPW_E_AGAIN while granules are lost; until
 * then no other move begins. Called after a failed commit, before work that may use the granules is
 * submitted. spw_pool_commit retries as well. */
enum spw_err spw_pool_move_remap_lost(struct spw_pool *pool);

/* Returns the first lost address, 0 when there is none; *ret_bytes is the number of lost bytes. */
uint64_t spw_pool_move_lost(struct spw_pool *pool, uint64_t *ret_bytes);

/* Gives chunks and pins back. SPW_E_AGAIN while copies are under way: the pool then gives chunks
 * and pins back later, when it polls fences or begins a move. A second call has no effect. */
enum spw_err spw_pool_move_end(struct spw_pool *pool, struct spw_move *move);

/* Ends a move later: the pool gives its chunks and pins back when it next polls fences. */
void spw_pool_move_leave(struct spw_pool *pool, struct spw_move *move);

/* ---- validation ---- */

/* Stores a hash of each granule. The device must be idle. */
enum spw_err spw_pool_move_hash(struct spw_pool *pool, struct spw_move *move);

/* Returns the first address whose content differs from its hash; 0 when all agree. */
uint64_t spw_pool_move_verify(struct spw_pool *pool, const struct spw_move *move);

/* Stores hashes of the copies of some granules, at least one per block and run of neighbours;
 * `turn` varies the choice. The copies must be done. */
enum spw_err spw_pool_move_sample(struct spw_pool *pool, struct spw_move *move, uint64_t turn);

/* Compares the copies of the sample after a second copy: *ret_granule is the first that differs, 0
 * when all agree. */
enum spw_err spw_pool_move_compare(struct spw_pool *pool, const struct spw_move *move,
                                   uint64_t *ret_granule);
