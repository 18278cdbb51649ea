#include "migrate/move/migration.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/size.h"
#include "migrate/move/barrier.h"
#include "migrate/tuning.h"
#include "system/backoff.h"
#include "system/clock.h"
#include "system/log.h"

/* Polls `ask` until its answer is not SPW_E_AGAIN, for at most most_ns. */
static enum spw_err poll_until(enum spw_err (*ask)(struct spw_pool *pool, struct spw_move *move),
                               struct spw_pool *pool, struct spw_move *move, uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    for (;;) {
        enum spw_err err = ask(pool, move);

        if (err != SPW_E_AGAIN || !spw_backoff_pause(&backoff)) {
            return err;
        }
    }
}

/* A mismatch is a bug in spillway, so the message gives all details. */
static void report_mismatch(const struct spw_migrator *migrator,
                            const struct spw_migration *migration, bool recopied, uint64_t address)
{
    struct spw_block block = {0};

    (void)spw_pool_find(migrator->pool, address, &block);
    spw_log_always(
        "SPILLWAY_VERIFY: BUG: content changed in a migration of device %d: granule "
        "0x%" PRIx64 ", block %" PRIu64 " at 0x%" PRIx64 " of %" PRIu64 " bytes, migration %" PRIu64
        " of %" PRIu64 " bytes, %s, %" PRIu64 " submissions so far",
        migrator->ordinal, address, block.id, block.address, block.bytes,
        spw_counter_get(&migrator->counters->moves), migration->bytes,
        !recopied              ? "pre-copied only"
        : migration->precopied ? "pre-copied, and copied again with submissions held back"
                               : "copied with submissions held back",
        spw_migrate_barrier_submissions());
}

static enum spw_err retry_remap(struct spw_pool *pool, struct spw_move *move)
{
    (void)move;
    return spw_pool_move_remap_lost(pool);
}

void spw_migrate_migration_remap(const struct spw_migrator *migrator)
{
    char size[SPW_SIZE_TEXT];
    uint64_t address, bytes;

    if (poll_until(retry_remap, migrator->pool, NULL, SPW_TUNE_LONG_WAIT_NS) == SPW_OK) {
        return;
    }
    address = spw_pool_move_lost(migrator->pool, &bytes);
    spw_log_always(
        "device %d: after a migration the driver does not give back access to %s at 0x%" PRIx64
        ": kernels that use it fail until it does; spillway keeps asking",
        migrator->ordinal, spw_size_text(bytes, size), address);
}

/* ---- dirty tracking ---- */

/* Whether a migration's granules may have been written since its pre-copy began. */
static bool is_dirty(const struct spw_migrator *migrator, const struct spw_migration *migration)
{
    uint64_t submissions = spw_migrate_barrier_submissions();

    if (submissions == migration->watched.since.submissions) {
        return false;
    }
    /* Inside a submission, that submission may be recorded but not yet counted as completed, so the
     * counts cannot be compared. */
    return migrator->log == NULL || migrator->in_submission ||
           spw_migrate_access_log_is_dirty(migrator->log, &migration->watched, submissions);
}

/* After the stop: true when the content must be copied again. */
static bool needs_recopy(struct spw_migrator *migrator, const struct spw_migration *migration)
{
    bool dirty;

    if (!migration->precopied) {
        return true;
    }
    dirty = is_dirty(migrator, migration);
    migrator->wasted_precopies = dirty ? migrator->wasted_precopies + 1 : 0;
    return dirty;
}

/* ---- beginning and ending ---- */

/* After an abandoned migration, arranges that a number of attempts are refused, more each time. */
static void update_backoff(struct spw_migrator *migrator, enum spw_err err)
{
    if (err == SPW_OK) {
        spw_counter_add(&migrator->counters->moves, 1);
        migrator->last_skip = 0;
        return;
    }
    spw_counter_add(&migrator->counters->abandoned_moves, 1);
    if (migrator->last_skip < SPW_TUNE_MAX_BACKOFF) {
        migrator->last_skip = 2 * migrator->last_skip + 1;
    }
    migrator->skip = migrator->last_skip;
}

bool spw_migrate_migration_release(struct spw_migrator *migrator)
{
    struct spw_move *held = migrator->to_release;

    migrator->to_release = NULL;
    if (held != NULL) {
        (void)spw_pool_move_end(migrator->pool, held);
    }
    return held != NULL;
}

/* Ends a migration, whatever its outcome. Its old memory is released later. */
static void end_migration(struct spw_migrator *migrator, const struct spw_migration *migration,
                          enum spw_err err)
{
    update_backoff(migrator, err);
    (void)spw_migrate_migration_release(migrator);
    migrator->to_release = migration->move;
    spw_pool_move_leave(migrator->pool, migration->move);
    if (migrator->log != NULL) {
        spw_migrate_access_log_unwatch(migrator->log, &migration->watched);
    }
}

/* True when pre-copy is enabled and worth while. It is not if the program waits: it would end
 * before the switch begins, and without it parts are switched while others are copied. When as many
 * in a row as can be in flight had to be repeated, it is tried only now and then. */
static bool should_precopy(struct spw_migrator *migrator, const struct spw_migration *migration)
{
    if (migration->detached) {
        return true;
    }
    if (!migrator->overlap || migration->awaited) {
        return false;
    }
    return migrator->wasted_precopies < SPW_MOVES ||
           ++migrator->wasted_precopies % SPW_TUNE_MAX_BACKOFF == 0;
}

/* Reads which granules the pool has chosen, and watches them. */
static void watch_granules(struct spw_migrator *migrator, struct spw_migration *migration)
{
    struct spw_access_log_watch *watched = &migration->watched;

    watched->count = spw_pool_move_places(migrator->pool, migration->move, watched->places);
    migration->bytes = watched->count * migrator->granule_bytes;
    if (migrator->log != NULL) {
        spw_migrate_access_log_watch(migrator->log, watched);
    }
}

/* Sets the snapshot after which accesses make the pre-copy dirty. */
static void set_start(struct spw_migrator *migrator, struct spw_migration *migration,
                      const struct spw_access_log_snapshot *since)
{
    uint64_t submissions = spw_migrate_barrier_submissions();

    migration->watched.since = (struct spw_access_log_snapshot){.submissions = submissions};
    if (migrator->log != NULL) {
        migration->watched.since =
            since != NULL ? *since : spw_migrate_access_log_snapshot(migrator->log, submissions);
    }
}

/* Starts the pre-copy, if it is worth while. */
static enum spw_err start_precopy(struct spw_migrator *migrator, struct spw_migration *migration,
                                  bool after_all)
{
    migration->waits_for_first = false;
    migration->precopied = should_precopy(migrator, migration);
    return migration->precopied ? spw_pool_move_copy(migrator->pool, migration->move, after_all)
                                : SPW_OK;
}

/* Starts the pre-copy of the second migration, if it was delayed until the first has switched. */
static void start_waiting(struct spw_migrator *migrator, bool device_idle)
{
    struct spw_migration *next = &migrator->migrations[(migrator->first + 1) % SPW_MOVES];
    enum spw_err err;

    if (migrator->in_flight < 2 || !next->waits_for_first) {
        return;
    }
    set_start(migrator, next, /* since */ NULL);
    err = start_precopy(migrator, next, /* after_all */ !device_idle);
    if (err != SPW_OK) {
        migrator->in_flight--;
        end_migration(migrator, next, err);
    }
}

/* Unmaps the granules, if the hardware may guard them. False if none was unmapped. */
static bool detach(struct spw_migrator *migrator, const struct spw_migration *migration)
{
    uint64_t begin = spw_clock_measured_ns();
    size_t granules;

    /* Inside a submission, that submission may be recorded but not yet counted as completed, so the
     * counts cannot be compared. */
    if (!migrator->guarded || migrator->verify || migrator->log == NULL ||
        spw_migrate_barrier_inside() || !spw_migrate_barrier_quiesce(migrator->wait_ns)) {
        return false;
    }
    granules = spw_migrate_access_log_detach(migrator->log, &migration->watched,
                                             spw_migrate_barrier_submissions(), migration->move);
    spw_migrate_barrier_resume();
    spw_counter_add(&migrator->counters->closed_ns, spw_clock_measured_ns() - begin);
    return granules > 0;
}

/* Sets up a migration that the pool has begun. */
static enum spw_err prepare(struct spw_migrator *migrator, struct spw_migration *migration,
                            const struct spw_access_log_snapshot *since)
{
    enum spw_err err = SPW_OK;

    watch_granules(migrator, migration);
    migration->precopied = false;
    set_start(migrator, migration, since);
    migration->detached = since != NULL && detach(migrator, migration);
    migration->waits_for_first =
        migrator->overlap && !migration->detached && migrator->in_flight > 0;
    if (!migration->waits_for_first) {
        err = start_precopy(migrator, migration, /* after_all */ since == NULL);
    }
    if (err != SPW_OK) {
        end_migration(migrator, migration, err);
        (void)spw_migrate_migration_release(migrator);
    }
    return err;
}

/* ---- stop-and-copy ---- */

static uint64_t copy_patience(const struct spw_migrator *migrator,
                              const struct spw_migration *migration)
{
    return migrator->wait_ns + migration->bytes / 1024 * SPW_TUNE_COPY_NS_PER_KIB;
}

static enum spw_err recopy(struct spw_migrator *migrator, struct spw_migration *migration)
{
    enum spw_err err = spw_pool_move_copy(migrator->pool, migration->move, /* after_all */ false);

    return err == SPW_OK ? poll_until(spw_pool_move_poll, migrator->pool, migration->move,
                                      copy_patience(migrator, migration))
                         : err;
}

/* Polls until a part is copied. Submissions are held back, so one `backoff` limits the waits for
 * all parts together. For each part the pauses start short again. */
static enum spw_err await_part(struct spw_migrator *migrator, const struct spw_migration *migration,
                               size_t part, struct spw_backoff *backoff)
{
    enum spw_err err;

    backoff->pause_ns = 0;
    do {
        err = spw_pool_move_poll_part(migrator->pool, migration->move, part);
    } while (err == SPW_E_AGAIN && spw_backoff_pause(backoff));
    return err;
}

/* Copies again and switches in parts: a part is switched while later parts are copied. */
static enum spw_err recopy_and_switch(struct spw_migrator *migrator,
                                      struct spw_migration *migration, uint64_t *ret_bytes)
{
    struct spw_backoff backoff = {.limit_ns = copy_patience(migrator, migration)};
    size_t parts = 0;
    enum spw_err err = spw_pool_move_copy_parts(migrator->pool, migration->move, &parts);

    for (size_t part = 0; part < parts && err == SPW_OK; part++) {
        uint64_t bytes = 0;

        err = await_part(migrator, migration, part, &backoff);
        if (err != SPW_OK) {
            break;
        }
        if (part + 1 == parts) {
            start_waiting(migrator, /* device_idle */ true);
        }
        err = spw_pool_move_commit_part(migrator->pool, migration->move, part, &bytes);
        *ret_bytes += bytes;
        if (err != SPW_OK) {
            spw_migrate_migration_remap(migrator);
        }
    }
    return err;
}

/* Switches the copied granules. With `verify`, compares content hashes before and after. */
static enum spw_err switch_copied(struct spw_migrator *migrator, struct spw_migration *migration,
                                  bool recopied, uint64_t *ret_bytes)
{
    enum spw_err err =
        migrator->verify ? spw_pool_move_hash(migrator->pool, migration->move) : SPW_OK;
    uint64_t wrong;

    if (err != SPW_OK) {
        return err;
    }
    start_waiting(migrator, /* device_idle */ true);
    err = spw_pool_move_commit(migrator->pool, migration->move, ret_bytes);
    if (err != SPW_OK) {
        spw_migrate_migration_remap(migrator);
    }
    if (migrator->verify) {
        wrong = spw_pool_move_verify(migrator->pool, migration->move);
        if (wrong != 0) {
            report_mismatch(migrator, migration, recopied, wrong);
        }
    }
    return err;
}

/* While submissions are held back and the device is idle: copies again if needed, and switches. */
static enum spw_err stop_and_copy(struct spw_migrator *migrator, struct spw_migration *migration,
                                  uint64_t *ret_bytes)
{
    bool again = needs_recopy(migrator, migration);
    enum spw_err err;

    spw_counter_add(&migrator->counters->second_copies, again && migration->precopied);
    if (again && !migrator->verify) {
        return recopy_and_switch(migrator, migration, ret_bytes);
    }
    err = again ? recopy(migrator, migration) : SPW_OK;
    if (err != SPW_OK) {
        return err;
    }
    return switch_copied(migrator, migration, again, ret_bytes);
}

/* Switches the granules of a detached migration that are still unmapped. */
static enum spw_err switch_detached(struct spw_migrator *migrator,
                                    const struct spw_migration *migration, uint64_t *ret_bytes)
{
    enum spw_err err = spw_pool_move_commit(migrator->pool, migration->move, ret_bytes);

    if (err != SPW_OK) {
        spw_migrate_migration_remap(migrator);
        return err;
    }
    spw_counter_add(&migrator->counters->moves_at_work, *ret_bytes > 0);
    return *ret_bytes > 0 ? SPW_OK : SPW_E_AGAIN;
}

static enum spw_err stop_and_switch(struct spw_migrator *migrator, struct spw_migration *migration,
                                    uint64_t *ret_bytes)
{
    uint64_t begin = spw_clock_measured_ns();
    enum spw_err err = SPW_E_AGAIN;

    if (spw_migrate_barrier_quiesce(migrator->wait_ns)) {
        err = poll_until(spw_pool_move_drain, migrator->pool, migration->move, migrator->wait_ns);
        err = err == SPW_OK ? stop_and_copy(migrator, migration, ret_bytes) : err;
        spw_migrate_barrier_resume();
    }
    spw_counter_add(&migrator->counters->closed_ns, spw_clock_measured_ns() - begin);
    return err;
}

enum spw_err spw_migrate_migration_begin(struct spw_migrator *migrator,
                                         const struct spw_move_request *move,
                                         enum spw_migration_cause cause,
                                         const struct spw_access_log_snapshot *since)
{
    struct spw_migration *migration =
        &migrator->migrations[(migrator->first + migrator->in_flight) % SPW_MOVES];
    enum spw_err err;

    if (migrator->in_flight == SPW_MOVES) {
        return SPW_E_AGAIN;
    }
    (void)spw_migrate_migration_release(migrator);
    if (migrator->skip > 0) {
        migrator->skip--;
        return SPW_E_AGAIN;
    }
    migration->predicted = cause == SPW_MIGRATION_PLANNED && migrator->log != NULL;
    migration->awaited = cause == SPW_MIGRATION_AWAITED;
    err = spw_pool_move_begin(migrator->pool, move, &migration->move);
    if (err == SPW_OK) {
        err = prepare(migrator, migration, since);
    }
    migrator->in_flight += err == SPW_OK;
    return err;
}

bool spw_migrate_migration_is_copied(struct spw_migrator *migrator)
{
    return spw_pool_move_poll(migrator->pool, migrator->migrations[migrator->first].move) !=
           SPW_E_AGAIN;
}

/* Waits for an idle device before submissions are held back, to keep the downtime short. */
static enum spw_err wait_until_idle(struct spw_migrator *migrator, struct spw_migration *migration,
                                    uint64_t patience_ns)
{
    enum spw_err err = spw_pool_move_drain(migrator->pool, migration->move);

    return err == SPW_E_AGAIN
               ? poll_until(spw_pool_move_drain, migrator->pool, migration->move, patience_ns)
               : err;
}

/* Reports the switched granules, even if other granules were not switched. */
static void report(struct spw_migrator *migrator, const struct spw_migration *migration,
                   uint64_t closed_ns)
{
    const struct spw_migrate_switched switched = {
        .places = migrator->switched,
        .count = spw_pool_move_committed(migrator->pool, migration->move, migrator->switched),
        .granule_bytes = migrator->granule_bytes,
        .closed_ns = closed_ns,
        .predicted = migration->predicted,
    };

    if (switched.count > 0) {
        migrator->moved(migrator->ordinal, &switched);
    }
}

enum spw_err spw_migrate_migration_finish(struct spw_migrator *migrator, uint64_t patience_ns,
                                          uint64_t *ret_bytes)
{
    struct spw_migration *migration = &migrator->migrations[migrator->first];
    uint64_t begin = spw_clock_measured_ns(),
             closed = spw_counter_get(&migrator->counters->closed_ns);
    /* If the driver refuses to remap lost memory, it would also refuse this switch. */
    enum spw_err err = spw_pool_move_remap_lost(migrator->pool);

    *ret_bytes = 0;
    migrator->in_submission = spw_migrate_barrier_inside();
    if (err == SPW_OK && migration->precopied) {
        err = poll_until(spw_pool_move_poll, migrator->pool, migration->move, patience_ns);
    }
    migrator->device_busy = migration->detached;
    if (err == SPW_OK && migration->detached) {
        err = switch_detached(migrator, migration, ret_bytes);
    } else if (err == SPW_OK) {
        err = wait_until_idle(migrator, migration, patience_ns);
        err = err == SPW_OK ? stop_and_switch(migrator, migration, ret_bytes) : err;
    }
    start_waiting(migrator, /* device_idle */ false);
    migrator->first = (migrator->first + 1) % SPW_MOVES;
    migrator->in_flight--;
    if (migrator->moved != NULL) {
        report(migrator, migration, spw_counter_get(&migrator->counters->closed_ns) - closed);
    }
    end_migration(migrator, migration, err);
    spw_counter_add(&migrator->counters->stall_ns, spw_clock_measured_ns() - begin);
    return err;
}

void spw_migrate_migration_give_up(struct spw_migrator *migrator)
{
    while (migrator->in_flight > 0) {
        struct spw_migration *migration = &migrator->migrations[migrator->first];

        migrator->first = (migrator->first + 1) % SPW_MOVES;
        migrator->in_flight--;
        end_migration(migrator, migration, SPW_E_AGAIN);
    }
    (void)spw_migrate_migration_release(migrator);
}

enum spw_err spw_migrate_migration_run(struct spw_migrator *migrator,
                                       const struct spw_move_request *move,
                                       enum spw_migration_cause cause,
                                       const struct spw_access_log_snapshot *since,
                                       uint64_t patience_ns, uint64_t *ret_bytes)
{
    enum spw_err err = spw_migrate_migration_begin(migrator, move, cause, since);

    *ret_bytes = 0;
    if (err == SPW_OK) {
        err = spw_migrate_migration_finish(migrator, patience_ns, ret_bytes);
        (void)spw_migrate_migration_release(migrator);
    }
    return err;
}
