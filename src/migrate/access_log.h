/* Heat: what the program uses, noted while memory is short; and what should move therefore.
 *
 * Knows every large block of a pool by its addresses, and the order of their use. Also watches over
 * moves that are under way: whether what was submitted since one began can have touched what moves.
 * A call whose arguments are not known may touch everything, and so may a kernel, which can find
 * addresses in memory or in a descriptor (pointer arrays, tensor maps); but of most kernels the
 * arguments tell all, and what they tell is kept apart.
 *
 * Locking: a mutex of its own, taken inside the tier's and outside the pool's; held for as long as
 * it takes to look up a few addresses, or, when a move is planned, to go through all blocks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/lock.h"
#include "pool/pool.h"
#include "migrate/predictor.h"
#include "migrate/block_index.h"
#include "migrate/planner.h"

/* How many pools are watched in the process: a call looks at its arguments only if there are any.
 */
extern _Atomic int spw_migrate_access_log_watched;

/* A moment in what the program submits. */
struct spw_access_log_moment {
    uint64_t submissions; /* of the whole process that had ended by then */
    uint64_t known;       /* calls whose arguments were all known */
    uint64_t certain;     /* of these, those that are no kernels */
    uint64_t clock;       /* calls whose addresses were noted */
    uint64_t events;      /* allocations, uses and frees */
};

/* A move that is under way. */
struct spw_access_log_move {
    struct spw_move_place places[SPW_MOVE_GRANULES];
    size_t count;
    struct spw_access_log_moment since; /* what came later may be under way beside the move */
};

struct spw_access_log {
    struct spw_lock lock;
    _Atomic bool on;
    struct spw_pool *pool;
    struct spw_counters *counters;
    uint64_t granule_bytes;
    struct spw_predictor order;
    struct spw_block_index places;
    bool blind;        /* there are blocks that it does not know */
    uint8_t *moving;   /* by granule: 0, or enum spw_tier with 1 added, where it moves to */
    uint64_t *touched; /* by granule: the clock at its last use */
    uint64_t known, certain, clock; /* as in the moment that is now */
    /* For planning: as many as there are granules, and allocations and frees in a period. */
    struct spw_granule_info *spots;
    struct spw_planner_granule *granules;
    struct spw_planner_need *needs;
    size_t spot_capacity, spot_count, need_capacity, need_count;
};

/* Begins to watch a pool. False when the process has no memory for it. */
bool spw_migrate_access_log_open(struct spw_access_log *heat, struct spw_pool *pool,
                                 struct spw_counters *counters);
void spw_migrate_access_log_close(struct spw_access_log *heat);

/* A block begins, or is about to end. */
void spw_migrate_access_log_alloc(struct spw_access_log *heat, uint64_t address, uint64_t bytes,
                                  uint32_t site);
void spw_migrate_access_log_free(struct spw_access_log *heat, uint64_t address);

/* The addresses in the arguments of a call: once for each, while the caller is inside the gate. A
 * `kernel` may touch more than that, other calls do not. */
void spw_migrate_access_log_record(struct spw_access_log *heat, const uint64_t *addresses,
                                   size_t count, bool kernel);

/* The same of a call that may touch anything: what it names is used, that is all. */
void spw_migrate_access_log_record_partial(struct spw_access_log *heat, const uint64_t *addresses,
                                           size_t count);

/* A kernel is about to be launched that never was before: what was found out about the program's
 * kernels is not known of this one. */
void spw_migrate_access_log_meet_kernel(struct spw_access_log *heat);

/* Whether one of the addresses is of a block that is on its way to the device. */
bool spw_migrate_access_log_awaits(struct spw_access_log *heat, const uint64_t *addresses,
                                   size_t count);

/* The moment that is now; `submissions` was read before. A call that had been noted by then, but
 * had not ended, will look like one that nobody knows. */
struct spw_access_log_moment spw_migrate_access_log_now(struct spw_access_log *heat,
                                                        uint64_t submissions);

/* A move begins; and it is over. No other is of the same places meanwhile. */
void spw_migrate_access_log_begin_move(struct spw_access_log *heat,
                                       const struct spw_access_log_move *move);
void spw_migrate_access_log_end_move(struct spw_access_log *heat,
                                     const struct spw_access_log_move *move);

/* What is known of all that was submitted since the moment of a move. */
enum spw_access_log_verdict {
    SPW_ACCESS_LOG_TOUCHED,   /* something touches what moves, or may */
    SPW_ACCESS_LOG_UNNAMED,   /* no argument names it, but kernels were among it */
    SPW_ACCESS_LOG_UNTOUCHED, /* nothing touches it */
};

/* The same; `submitted` in all. Exact while nobody is inside the gate. */
enum spw_access_log_verdict spw_migrate_access_log_judge(struct spw_access_log *heat,
                                                         const struct spw_access_log_move *move,
                                                         uint64_t submitted);

/* Whether the arguments of all that was submitted since are known, so that it can be told what they
 * name; and whether they name a granule. */
bool spw_migrate_access_log_tells(struct spw_access_log *heat,
                                  const struct spw_access_log_moment *since, uint64_t submitted);
bool spw_migrate_access_log_is_named(struct spw_access_log *heat,
                                     const struct spw_access_log_moment *since, uint64_t granule);

/* The number of events so far: allocations, uses and frees. */
uint64_t spw_migrate_access_log_events(struct spw_access_log *heat);

/* Whether it is known what is used next, and the number of events so far. */
bool spw_migrate_access_log_knows(struct spw_access_log *heat, uint64_t *ret_events,
                                  uint64_t *ret_period);

/* How the order of use goes. */
struct spw_predictor_course spw_migrate_access_log_course(struct spw_access_log *heat);

/* What is to be made room for, and how. */
struct spw_access_log_wish {
    uint64_t bytes;     /* more room now; 0: what is to come tells */
    uint64_t kept;      /* of the device, not to be filled */
    size_t most;        /* granules to move either way; at most SPW_MOVE_GRANULES / 2 */
    uint32_t least_age; /* of what goes to the host, in events, while nothing is known */
    const struct spw_access_log_moment *passed; /* nothing that was named since; NULL: anything */
    bool hot; /* to the device, only what was: it can come only while the device rests */
};

struct spw_access_log_plan {
    struct spw_move_place places[SPW_MOVE_GRANULES];
    size_t count;
    uint32_t at; /* events until the first is needed */
    size_t hot;  /* granules on the host that were left out, as they were named since */
};

/* Chooses what is to move. */
void spw_migrate_access_log_plan(struct spw_access_log *heat,
                                 const struct spw_access_log_wish *wish,
                                 struct spw_access_log_plan *ret_plan);
