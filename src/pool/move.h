/* Moves: the content of granules is copied to chunks of the other tier. The addresses stay the
 * same.
 *
 * These functions only carry out moves. A move has several steps, because the caller waits between
 * them without the pool's lock:
 *   begin    chooses granules, pins them, and gets new chunks
 *   copy     enqueues copies from the granules to the new chunks
 *   poll     checks whether the copies are done
 *   commit   maps the new chunks in place of the old ones
 *   end      gives uncommitted chunks back
 *
 * The caller guarantees that no work writes to the granules between the start of the copies and
 * commit, and that no device work uses them during commit. It can also let the hardware guard them:
 *   detach   after begin: unmaps the old chunks, which are copied at second addresses
 * Any use is then a fault. After commit, chunks of the host stay unmapped. Before work that uses
 * granules is submitted, `attach` maps them again, and removes them from the move. All granules of
 * a chunk move together. The new chunk has the same size, or replaces several neighbouring chunks.
 * A pinned granule is not stolen for other allocations. The block on it may be freed and other
 * blocks allocated there, because the move copies the granule, not the block.
 *
 * Two moves of different granules may be in progress at once, so that one can be committed while
 * the other is copied.
 *
 * Locking: each function takes the pool's lock unless marked "No lock". Only one thread at a time
 * works with moves. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "pool/vm_ops.h"

struct spw_pool;

/* The most granules in one move, the most moves at a time, and the most parts of a move. */
enum { SPW_MOVE_GRANULES = 256, SPW_MOVES = 2, SPW_MOVE_PARTS = 8 };

/* A move. The pool owns it. It is valid from its begin to its end. */
struct spw_move;

/* A granule to move. */
struct spw_move_place {
    uint64_t block;   /* start address of a block on the granule */
    uint64_t granule; /* address of the granule */
    enum spw_tier to;
};

/* Selects blocks of a pool. A block must satisfy every member that is set. */
struct spw_block_filter {
    uint8_t account;       /* only blocks of this account; 0: of every account */
    const uint64_t *sites; /* only blocks of these call sites, one bit for each; NULL: all sites.
                              Not owned */
    uint32_t site_count;   /* number of bits in `sites`; sites beyond it are not selected */
};

/* Describes a move. With `places`, the move has these granules in this order, in both directions.
 * Without `places`, the pool chooses granules to move to tier `to`. Blocks of low priority move to
 * the host first; among blocks of equal priority, the least recently used one. Blocks move to the
 * device in the opposite order. */
struct spw_move_request {
    const struct spw_move_place *places; /* NULL: the pool chooses */
    size_t count;
    enum spw_tier to;
    uint64_t bytes;
    uint64_t least_age;           /* only blocks whose last use is at least this many frees ago */
    struct spw_block_filter only; /* only these blocks */
};

/* ---- finding granules to move ---- */

/* The state of one granule. The first granule of a chunk has the state of the chunk. */
struct spw_granule_info {
    uint64_t block;   /* start address of a block on the granule or chunk; 0: none */
    int32_t priority; /* highest priority of the blocks on the granule or chunk */
    uint8_t tier;     /* enum spw_tier; during a move, the new tier */
    uint8_t part;     /* number of the granule in its chunk */
    uint8_t count;    /* number of granules in the chunk */
    bool movable;     /* false during a move */
};

/* Returns how many more bytes of blocks the device can hold when the current moves are done, in
 * chunks that no block uses. Negative if the blocks exceed the device. */
int64_t spw_pool_room(struct spw_pool *pool);

/* Writes the states of at most `most` granules, beginning with the first granule of the heap of
 * large blocks. *ret_address is the address of that granule. *ret_room is the room, and also counts
 * free granules of chunks that blocks use: new blocks fit there. Returns the number of granules. */
size_t spw_pool_scan_granules(struct spw_pool *pool, struct spw_granule_info *infos, size_t most,
                              uint64_t *ret_address, int64_t *ret_room);

/* Lists chunks on the host that are under a block at one of these addresses and that may move to
 * the device. Each chunk is listed by one of its granules. Stops when the chunks have
 * SPW_MOVE_GRANULES granules. Ignores small blocks, because they never move. Returns the number of
 * chunks; *ret_bytes is their total size. */
size_t spw_pool_find_on_host(struct spw_pool *pool, const uint64_t *addresses, size_t count,
                             struct spw_move_place ret_places[SPW_MOVE_GRANULES],
                             uint64_t *ret_bytes);

/* Called for a block, with the pool's lock held. `age` is the number of blocks freed since its last
 * use. */
typedef void spw_pool_visitor(void *cookie, uint64_t address, uint64_t bytes, uint32_t site,
                              uint64_t age);

/* Calls `visit` for every large block. */
void spw_pool_each_large(struct spw_pool *pool, spw_pool_visitor *visit, void *cookie);

/* Returns the range of addresses of large blocks. No lock. */
void spw_pool_large_range(const struct spw_pool *pool, uint64_t *ret_address, uint64_t *ret_bytes,
                          uint64_t *ret_granule_bytes);

/* The first fixes every live block, without setting a reason of enum spw_fixed_reason, and removes
 * all items from the current moves. The second undoes this. */
void spw_pool_fix_all(struct spw_pool *pool);
void spw_pool_release_all(struct spw_pool *pool);

/* With `may`, blocks that are fixed by executable graphs may move. Blocks that graphs name then
 * move to the device first, and to the host last. Without `may`, ends that state. No graph may be
 * launched during that state. */
void spw_pool_let_graphs_move(struct spw_pool *pool, bool may);

/* ---- a move ---- */

/* Begins a move. Returns SPW_E_NOTHING if no granule can move, and SPW_E_NO_MEMORY if the new tier
 * has no memory. Returns SPW_E_AGAIN if SPW_MOVES moves are in progress, if granules that an
 * earlier move lost cannot be mapped yet, or if the backend gives no access any more. After a
 * failure, no chunk is held. */
enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_request *request,
                                 struct spw_move **ret_move);

/* Lists the granules of a move, at most SPW_MOVE_GRANULES. `block` stays 0. Returns their
 * number. */
size_t spw_pool_move_places(struct spw_pool *pool, const struct spw_move *move,
                            struct spw_move_place *ret_places);

/* Lists the granules that were committed so far, in the same way. */
size_t spw_pool_move_committed(struct spw_pool *pool, const struct spw_move *move,
                               struct spw_move_place *ret_places);

/* Enqueues the copies. With `after_all`, they run after all work submitted so far. May be called
 * again when the earlier copies are done. */
enum spw_err spw_pool_move_copy(struct spw_pool *pool, struct spw_move *move, bool after_all);

/* Enqueues the copies in *ret_parts parts of about the same size. One part can then be committed
 * while later parts are still being copied. */
enum spw_err spw_pool_move_copy_parts(struct spw_pool *pool, struct spw_move *move,
                                      size_t *ret_parts);

/* Return SPW_OK if the copies, or the copies of one part, are done; SPW_E_AGAIN if not. */
enum spw_err spw_pool_move_poll(struct spw_pool *pool, struct spw_move *move);
enum spw_err spw_pool_move_poll_part(struct spw_pool *pool, struct spw_move *move, size_t part);

/* Returns SPW_OK if all work that was submitted to the device before the first call is done,
 * SPW_E_AGAIN if not. After SPW_OK, the next call counts as the first again. */
enum spw_err spw_pool_move_drain(struct spw_pool *pool, struct spw_move *move);

/* Unmaps the granules of a move that are not left out, so that any use of them is a fault. No work
 * may use them. Granules that cannot be unmapped are left out, unless none can. Called between
 * begin and copy. Returns the number of granules unmapped. */
size_t spw_pool_move_detach(struct spw_pool *pool, struct spw_move *move);

/* Map the granules of [address, end), or all granules, that are unmapped since a detach. Remove
 * them from the moves in progress. Return false if granules are lost (see
 * spw_pool_move_remap_lost). */
bool spw_pool_attach(struct spw_pool *pool, uint64_t address, uint64_t end);
bool spw_pool_attach_all(struct spw_pool *pool);

/* Removes the granule at an address from the move, together with all granules that share its new
 * chunk. */
void spw_pool_move_leave_out(struct spw_pool *pool, struct spw_move *move, uint64_t granule);

/* Maps the new chunks in place of the old ones. The copies must be done, and no work may use the
 * granules. *ret_bytes is the number of bytes moved. After a failure, the remaining granules are
 * unchanged, or lost. A granule is lost if neither of its chunks could be mapped and made
 * accessible (see spw_pool_move_remap_lost). */
enum spw_err spw_pool_move_commit(struct spw_pool *pool, struct spw_move *move,
                                  uint64_t *ret_bytes);

/* Commits one part, after spw_pool_move_copy_parts. */
enum spw_err spw_pool_move_commit_part(struct spw_pool *pool, struct spw_move *move, size_t part,
                                       uint64_t *ret_bytes);

/* Tries again to map lost granules, whose content is intact. Returns SPW_E_AGAIN while granules are
 * lost; no other move begins until then. Called after a failed commit, before work that may use the
 * granules is submitted. spw_pool_commit tries this as well. */
enum spw_err spw_pool_move_remap_lost(struct spw_pool *pool);

/* Returns the first lost address; 0 if there is none. *ret_bytes is the number of lost bytes. */
uint64_t spw_pool_move_lost(struct spw_pool *pool, uint64_t *ret_bytes);

/* Gives chunks and pins back. Returns SPW_E_AGAIN while copies are in progress. The pool then gives
 * the chunks and pins back later, when it polls fences or begins a move. A second call has no
 * effect. */
enum spw_err spw_pool_move_end(struct spw_pool *pool, struct spw_move *move);

/* Ends a move later. The pool gives the chunks and pins of the move back when it next polls
 * fences. */
void spw_pool_move_leave(struct spw_pool *pool, struct spw_move *move);

/* ---- validation ---- */

/* Stores a hash of the content of each granule. The device must be idle. */
enum spw_err spw_pool_move_hash(struct spw_pool *pool, struct spw_move *move);

/* Returns the first address whose content differs from its hash; 0 if all are equal. */
uint64_t spw_pool_move_verify(struct spw_pool *pool, const struct spw_move *move);
