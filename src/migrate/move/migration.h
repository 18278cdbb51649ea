/* Moves memory while the program runs. It does not know exports.
 *
 *   barrier      holds submissions back during stop-and-copy
 *   migration    runs a migration: pre-copy, stop-and-copy, switch
 *   step_meter   measures what moves cost a step
 *   throttle     keeps the program near the device, so that a stop is short
 *   prefetch     decides when to migrate ahead of use
 *
 * Live migration of granules between device and host memory while the program runs.
 *
 * A migration has the phases of a virtual machine's live migration:
 *
 *     pre-copy       the content is copied on a stream of spillway; the program continues. This
 *                    phase is left out if the program waits for the migration
 *     stop           the submit barrier is quiesced (barrier.h) and the device becomes idle
 *     and copy       content that may have been written since the pre-copy is copied again
 *     switch         the new memory is mapped in place of the old; submissions resume
 *
 * The time from stop to switch is the downtime (counter closed_ns). Every wait is bounded, because
 * the device may itself wait for a submission that is held back. A migration that takes longer is
 * abandoned, without effect.
 *
 * Up to SPW_MOVES migrations are in flight, so that the link has work during a switch. They finish
 * in the order in which they began. If the device must be idle for the first switch, the second
 * migration delays its pre-copy until then. Otherwise the fences that report an idle device would
 * wait for the second migration's copies.
 *
 * The access log finds granules that may have been written since pre-copy (dirty tracking). Only a
 * pre-copy of such granules is repeated.
 *
 * With `guarded`, a planned migration has no stop. Its granules are those that no submitted work
 * uses any more, as far as the arguments of all calls show:
 *
 *     detach         the granules are unmapped: the hardware reports any later use as a fault
 *     copy           between the second addresses of the old and the new memory
 *     switch         granules for the device are mapped there; granules for the host stay unmapped
 *
 * A call that names such a granule, and a call that may use any memory, first map it again
 * (access_log.h); a granule that is being copied then stays where it was. So nothing can be lost. A
 * kernel that uses an unmapped granule without naming it ends with an error of the device.
 *
 * Locking: none. The caller holds the lock of struct spw_migrate, but not a pool's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "migrate/learn/access_log.h"
#include "pool/pool.h"

/* Why a migration is made. */
enum spw_migration_cause {
    SPW_MIGRATION_PLANNED, /* from predictions, ahead of use */
    SPW_MIGRATION_AWAITED, /* the program's thread waits for it: there is no pre-copy */
    SPW_MIGRATION_OTHER,
};

/* A migration in flight. */
struct spw_migration {
    struct spw_move *move;               /* the pool's record of the migration */
    struct spw_access_log_watch watched; /* its granules, and since when accesses count */
    uint64_t bytes;
    bool predicted; /* planned, and accesses are recorded */
    bool awaited;
    bool waits_for_first; /* pre-copy is delayed until the earlier migration has switched */
    bool precopied;       /* pre-copy was made */
    bool detached;        /* the granules are unmapped: no stop is needed */
};

/* The granules that a migration has switched, and how long submissions were held back. */
struct spw_migrate_switched {
    const struct spw_move_place *places; /* `block` is not set */
    size_t count;
    uint64_t granule_bytes, closed_ns;
    bool predicted;
};

/* Called with the switched granules, with the tier's lock held. */
typedef void spw_migrate_moved(int ordinal, const struct spw_migrate_switched *switched);

/* Runs the migrations of one pool. */
struct spw_migrator {
    struct spw_pool *pool;
    struct spw_counters *counters;
    int ordinal;
    uint64_t granule_bytes;
    uint64_t wait_ns; /* longest time that submissions are held back for the device to idle */
    bool overlap;     /* pre-copy is allowed */
    bool verify;      /* compare content hashes before and after each switch */
    bool guarded;     /* unmap granules before they are copied, instead of stopping */
    uint32_t wasted_precopies;                         /* number repeated in a row */
    spw_migrate_moved *moved;                          /* may be NULL */
    struct spw_move_place switched[SPW_MOVE_GRANULES]; /* scratch */
    uint32_t skip;                              /* attempts to refuse, after abandoned migrations */
    uint32_t last_skip;                         /* last start value of `skip`; 0 after a success */
    struct spw_access_log *log;                 /* NULL: accesses are not recorded */
    struct spw_migration migrations[SPW_MOVES]; /* ring of migrations in flight */
    size_t first, in_flight;                    /* the oldest one's index; number in flight */
    bool in_submission;          /* the calling thread is itself inside a submission */
    bool device_busy;            /* the last switch was made while the device was busy */
    struct spw_move *to_release; /* finished move whose old memory is still held; or NULL */
};

/* Runs a whole migration: begin, finish and release. No migration may be in flight. Waits at most
 * `patience_ns` before the barrier is quiesced. `since`: see spw_migrate_migration_begin.
 * *ret_bytes is the number of bytes migrated, also on an error. Errors: SPW_E_NOTHING and
 * SPW_E_NO_MEMORY as of spw_pool_move_begin; SPW_E_AGAIN when the migration was abandoned, or
 * refused because earlier ones were abandoned. */
enum spw_err spw_migrate_migration_run(struct spw_migrator *migrator,
                                       const struct spw_move_request *move,
                                       enum spw_migration_cause cause,
                                       const struct spw_access_log_snapshot *since,
                                       uint64_t patience_ns, uint64_t *ret_bytes);

/* Begins a migration and its pre-copy. SPW_E_AGAIN when SPW_MOVES migrations are in flight, or when
 * this one is refused because earlier ones were abandoned. `since`: a snapshot; the device has
 * completed all work up to it, and the granules were not accessed later, so pre-copy need not wait,
 * and with `guarded` the granules are detached. If `since` is NULL, pre-copy waits for all work
 * submitted so far, or for an earlier migration in flight. */
enum spw_err spw_migrate_migration_begin(struct spw_migrator *migrator,
                                         const struct spw_move_request *move,
                                         enum spw_migration_cause cause,
                                         const struct spw_access_log_snapshot *since);

/* True when the pre-copy of the oldest migration is complete. A migration must be in flight. */
bool spw_migrate_migration_is_copied(struct spw_migrator *migrator);

/* Finishes the oldest migration: waits for its pre-copy, then stop-and-copy and switch. Its old
 * memory stays held until spw_migrate_migration_release, so that the driver calls that release it
 * are not part of the downtime. A migration must be in flight. Results are those of
 * spw_migrate_migration_run. */
enum spw_err spw_migrate_migration_finish(struct spw_migrator *migrator, uint64_t patience_ns,
                                          uint64_t *ret_bytes);

/* Called when memory is not accessible, because the driver refused to map it: the program would
 * fail when it next uses that memory. Asks the driver again for two seconds, and then reports
 * this. */
void spw_migrate_migration_remap(const struct spw_migrator *migrator);

/* Gives up all migrations in flight, and releases their new memory. */
void spw_migrate_migration_give_up(struct spw_migrator *migrator);

/* Releases the old memory of the last finished migration. False if there is none. */
bool spw_migrate_migration_release(struct spw_migrator *migrator);
