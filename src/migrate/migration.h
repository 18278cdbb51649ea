/* Moves memory between the tiers while the program runs: the two phases of a move.
 *
 * First the content is copied on a stream of spillway's own while the program goes on; then the
 * gate is closed, the device comes to rest, what may have been written since is copied again, and
 * the new chunks take the place of the old ones. Every wait is bounded: what is under way may be
 * waiting for a later submission, so a move that takes too long is abandoned, and nothing has
 * changed. A move is made in one go, or begun and looked after now and then until its copies are
 * done. A second one may be begun meanwhile, so that there is something to copy while the first is
 * exchanged; they are finished in the order in which they began. Where the device must rest for the
 * exchange, the second waits with its copies until then: the fences that tell that it rests come
 * before these, and would have to wait for them otherwise.
 *
 * What may have been written is told by the arguments of what was submitted, as far as these are
 * believed (validation.h). Where a first copy is likely to be of no use, none is made. Where the
 * user trusts arguments to name whatever is touched, the device need not come to rest: what was
 * named since the copies began is left where it is, and of the rest nothing is in use. Belief that
 * was earned is not enough for that: audits find what was written, not what was read.
 *
 * Locking: the caller lets one thread at a time move memory of a pool, and holds no pool's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "pool/pool.h"
#include "migrate/validation.h"
#include "migrate/access_log.h"

/* A move that is under way. */
struct spw_flight {
    struct spw_move *move;
    struct spw_access_log_move watched; /* what moves, and since when */
    uint64_t bytes;
    bool foreseen;    /* it follows the order of use */
    bool rest;        /* the device is to rest for it in any case */
    bool waits;       /* with its first copy, until the move before is exchanged */
    bool copied;      /* its first copy was made */
    bool sampled;     /* and can be compared with the second */
    uint64_t unnamed; /* a granule of it that was written to and not named; 0: none */
};

struct spw_migration {
    struct spw_pool *pool;
    struct spw_counters *counters;
    int ordinal;
    uint64_t granule_bytes;
    uint64_t wait_ns; /* how long the gate may be closed for the device to come to rest */
    bool overlap, verify;
    bool trust; /* a kernel's arguments name all that it writes to */
    bool audit; /* whether they do is found out; else, without trust, they do not */
    struct spw_validation evidence;
    /* Writes in a few words who is charged with the blocks of a site. */
    void (*label)(uint32_t site, char *text, size_t capacity);
    uint32_t skip; /* moves not to be tried, since the last ones were abandoned */
    uint32_t next_skip;
    struct spw_access_log *heat; /* who sees what moves used; NULL: nobody */
    struct spw_flight flights[SPW_MOVES];
    size_t first, under_way;   /* the one that began first, and how many there are */
    bool inside;               /* the thread that finishes it has a call under way */
    bool at_work;              /* the last one was exchanged while the device was at work */
    struct spw_move *to_clear; /* the last one that is done but for what it held; NULL: none */
};

/* Moves what is wished, as far as it can be had in one go, waiting at most `patience_ns` with the
 * gate open; `since` as below. No move is under way. *ret_bytes have moved, also when an error is
 * returned: SPW_E_NO_MEMORY when there is nothing to move or nowhere to move it to, SPW_E_AGAIN
 * when the move was abandoned or is not tried now. */
enum spw_err spw_migrate_migration_move(struct spw_migration *mover,
                                        const struct spw_move_request *wish,
                                        const struct spw_access_log_moment *since,
                                        uint64_t patience_ns, uint64_t *ret_bytes);

/* Begins to move what is wished: the first half of spw_migrate_migration_move. When it succeeds, a
 * move is under way until it is finished; SPW_E_AGAIN also when SPW_MOVES are. `foreseen`: the wish
 * is what the order of use tells. `since`: the device has passed that moment and what is wished was
 * not named after it, so that the copies need not wait for anything; NULL: they wait for all that
 * was submitted so far, or, without trust, for the move that is under way. */
enum spw_err spw_migrate_migration_begin(struct spw_migration *mover,
                                         const struct spw_move_request *wish, bool foreseen,
                                         const struct spw_access_log_moment *since);

/* The device is to rest for the move that began last. One is under way. */
void spw_migrate_migration_rest(struct spw_migration *mover);

/* Whether the copies of the move that began first are done. One is under way. */
bool spw_migrate_migration_is_ready(struct spw_migration *mover);

/* The second half, of the move that began first: waits for the copies and exchanges the memory.
 * What it took the place of is held until it is cleared, which takes calls of the driver that can
 * as well be made while the device is at work again. One is under way. */
enum spw_err spw_migrate_migration_finish(struct spw_migration *mover, uint64_t patience_ns,
                                          uint64_t *ret_bytes);

/* Gives back what the last move held. False when it held nothing. */
bool spw_migrate_migration_clear(struct spw_migration *mover);
