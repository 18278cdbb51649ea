/* The use of memory: learns it, and predicts it. It does not know how memory moves.
 *
 *   access_log    records the program's accesses; answers dirty tracking
 *   block_index   the block at an address
 *   predictor     learns the repetition of accesses, and predicts the next ones
 *   planner       chooses the granules to swap
 *   progress      work that the device has completed
 *
 * Access log: records which blocks of a pool the program uses, from the first memory shortage on.
 *
 * It has three users. The predictor (predictor.h) learns the repetition of accesses. The planner
 * (planner.h) chooses what to migrate. The migrator uses it for dirty tracking: has work submitted
 * since the beginning of a migration named the granules being copied?
 *
 * There is one record for each submitted call. A record is complete when the addresses of all
 * arguments are known. Even with a complete record a kernel may reach other memory, through
 * pointers that it loads or through descriptors (pointer arrays, tensor maps); a copy or memset
 * cannot. The log therefore counts complete records, and separately the complete records of other
 * calls than kernels. These counts and the number of submissions show the log's knowledge of a time
 * span:
 *
 *     submitted 5, complete 5, no kernels 5   clean if no argument named the granule
 *     submitted 5, complete 5, no kernels 2   dirty: kernels may use hidden pointers
 *     submitted 5, complete 4                 dirty: one call may have touched any memory
 *
 * With SPILLWAY_OVERLAP=guarded, granules are unmapped (detach) if all records since a moment are
 * complete and none of them names the granule. Later records map the granules again.
 *
 * The debug log gets a line for each event; the benchmarks `arguments` and `predict` read these
 * lines:
 *
 *     access live ADDRESS+BYTES SITE   a block entered without an event
 *     access untracked ADDRESS+BYTES SITE
 *     access alloc ADDRESS+BYTES SITE
 *     access free ADDRESS
 *     access use ADDRESS               of a block; the line of its call follows
 *     access kernel THREAD             a launch with all its addresses known
 *     access other THREAD              another such call
 *     access partial THREAD            a call with some of its addresses known
 *     access step                      the program marks a step
 *
 * Locking: a mutex of its own, taken inside the lock of struct spw_migrate and outside the pool's.
 * The log holds it while it looks up a few addresses, or reads all granules for a plan. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "migrate/learn/block_index.h"
#include "migrate/learn/planner.h"
#include "migrate/learn/predictor.h"
#include "pool/pool.h"
#include "system/lock.h"

/* Number of open logs in the process. While it is 0, callers need not look at their arguments. */
extern _Atomic int spw_migrate_access_log_count;

/* The log's counts at one point in time. */
struct spw_access_log_snapshot {
    uint64_t submissions;         /* completed submissions of the whole process */
    uint64_t complete;            /* records with all addresses known */
    uint64_t complete_non_kernel; /* complete records of other calls than kernels */
    uint64_t clock;               /* all records */
    uint64_t events;              /* allocations, uses and frees (the predictor's unit of time) */
};

/* The granules of one migration, watched for accesses. */
struct spw_access_log_watch {
    struct spw_move_place places[SPW_MOVE_GRANULES];
    size_t count;
    struct spw_access_log_snapshot since; /* later accesses may race with the copies */
};

struct spw_access_log {
    struct spw_lock lock;
    _Atomic bool on;
    struct spw_pool *pool;
    struct spw_counters *counters;
    uint64_t granule_bytes;
    struct spw_predictor predictor;
    struct spw_block_index index;
    bool incomplete;            /* some live blocks are not in the index */
    uint8_t *target_tier;       /* by granule: 1 + the target of its migration; 0: none */
    uint64_t *last_access;      /* by granule: `clock` at its last access */
    uint64_t *seen_cold;        /* by first granule of a chunk: number of events when a plan last
                                   found that no submitted work used it, or found it on the
                                   device; 0: no plan yet */
    bool *detached;             /* by granule: detached, and not attached since */
    bool any_detached;          /* a member of `detached` may be set */
    _Atomic bool attach_failed; /* granules were lost when they should have been mapped again */
    uint64_t complete, complete_non_kernel, clock; /* as in the snapshot */
    /* Scratch memory for planning. */
    struct spw_granule_info *spots;
    struct spw_planner_chunk *chunks;
    struct spw_planner_need *needs; /* at most one for each event of the history */
    struct spw_planner_move moves[SPW_MOVE_GRANULES];
    size_t spot_capacity, spot_count, need_count;
};

/* Opens the log of a pool and enters its live blocks. False when the process has no memory. */
bool spw_migrate_access_log_open(struct spw_access_log *log, struct spw_pool *pool,
                                 struct spw_counters *counters);

/* Frees its memory. No other thread uses the log any more. */
void spw_migrate_access_log_close(struct spw_access_log *log);

/* Records an allocation, and a free (before the memory can be reused). Addresses outside of the
 * pool's large blocks are ignored. */
void spw_migrate_access_log_alloc(struct spw_access_log *log, uint64_t address, uint64_t bytes,
                                  uint32_t site);
void spw_migrate_access_log_free(struct spw_access_log *log, uint64_t address);

/* Enters a new block without an event. Uses of an `untracked` block are no events; they count only
 * for migrations under way. */
void spw_migrate_access_log_enter(struct spw_access_log *log, uint64_t address, uint64_t bytes,
                                  uint32_t site, bool untracked);

/* Records a submitted call with all addresses of its arguments; a `kernel` may also reach other
 * memory. Once for each call, while the caller holds the submit barrier. */
void spw_migrate_access_log_record(struct spw_access_log *log, const uint64_t *addresses,
                                   size_t count, bool kernel);

/* Records a call with only some of its addresses, or none: it may touch any other memory. */
void spw_migrate_access_log_record_partial(struct spw_access_log *log, const uint64_t *addresses,
                                           size_t count);

/* Records that the program marks the beginning of a step. */
void spw_migrate_access_log_mark_step(struct spw_access_log *log);

/* True when one of the addresses is in a block that is being migrated to the device. */
bool spw_migrate_access_log_is_incoming(struct spw_access_log *log, const uint64_t *addresses,
                                        size_t count);

/* The counts now. The caller reads `submissions` before the call: a race can make a recorded call
 * look unknown, but no unknown call look recorded. */
struct spw_access_log_snapshot spw_migrate_access_log_snapshot(struct spw_access_log *log,
                                                               uint64_t submissions);

/* Marks the granules of a migration as migrating, and unmarks them. A granule is in one migration
 * at a time. */
void spw_migrate_access_log_watch(struct spw_access_log *log,
                                  const struct spw_access_log_watch *watch);
void spw_migrate_access_log_unwatch(struct spw_access_log *log,
                                    const struct spw_access_log_watch *watch);

/* Dirty tracking: true if the watched granules may have been written since the watch began: an
 * argument names one, or a kernel or an unknown call was submitted. `submitted` is the number of
 * submissions now. Exact while the submit barrier is quiesced. */
bool spw_migrate_access_log_is_dirty(struct spw_access_log *log,
                                     const struct spw_access_log_watch *watch, uint64_t submitted);

/* Detaches a move (pool/move.h): its granules are unmapped, except those that were accessed since
 * the watch began. The next record of a call that may use them maps them again. `submitted` is the
 * number of submissions now; the submit barrier is quiesced. Returns the number of granules
 * unmapped; 0, without any effect, if a call since then may have used any memory. */
size_t spw_migrate_access_log_detach(struct spw_access_log *log,
                                     const struct spw_access_log_watch *watch, uint64_t submitted,
                                     struct spw_move *move);

/* Number of events so far. */
uint64_t spw_migrate_access_log_events(struct spw_access_log *log);

/* Number of events so far and the predictor's period. False when nothing is predicted. Publishes
 * the predictor's hits and misses in the counters. */
bool spw_migrate_access_log_find_period(struct spw_access_log *log, uint64_t *ret_events,
                                        uint64_t *ret_period);

/* The purpose and the limits of a plan. */
struct spw_access_log_goal {
    uint64_t bytes;     /* room to make on the device now; 0: swap ahead of the predicted uses */
    uint64_t kept;      /* bytes of the device to leave free */
    size_t most;        /* granules to move in each direction; at most SPW_MOVE_GRANULES / 2 */
    uint32_t least_age; /* without predictions: evict only memory unused for so many events */
    /* Leave out granules that were accessed since this snapshot; NULL: consider all. */
    const struct spw_access_log_snapshot *completed;
    bool hot; /* fetch only hot chunks: the device must idle for them */
};

struct spw_access_log_plan {
    struct spw_move_place places[SPW_MOVE_GRANULES]; /* first granules of chunks */
    size_t count;
    size_t granules; /* in these chunks */
    uint32_t at;     /* events until the first is needed */
    size_t hot;      /* chunks on the host that submitted work has used at every plan for more than
                        a period: they would be used over the link for ever */
};

/* Chooses the granules to migrate. ret_plan->count is 0 when there is nothing worth moving. */
void spw_migrate_access_log_plan(struct spw_access_log *log, const struct spw_access_log_goal *goal,
                                 struct spw_access_log_plan *ret_plan);
