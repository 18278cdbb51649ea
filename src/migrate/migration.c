#include "migrate/migration.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/size.h"
#include "migrate/barrier.h"

enum {
    MOST_SKIPPED = 64,
    COPY_NS_PER_KIB = 200, /* 5 GB/s: far less than any link that is worth copying over */
    INSIST_NS = 1000000000 /* held back that long rather than lose content */
};

/* Asks until it is done, at most for a while. */
static enum spw_err await(enum spw_err (*ask)(struct spw_pool *pool, struct spw_move *move),
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

/* A mismatch is a bug of spillway's: everything that is known is told. */
static void report_mismatch(const struct spw_migration *mover, const struct spw_flight *flight,
                            bool behind_gate, uint64_t address)
{
    struct spw_block block = {0};

    (void)spw_pool_find(mover->pool, address, &block);
    spw_log_always("SPILLWAY_VERIFY: BUG: content changed in a move of device %d: granule "
                   "0x%" PRIx64 ", block %" PRIu64 " at 0x%" PRIx64 " of %" PRIu64
                   " bytes, move %" PRIu64 ", wish of %" PRIu64 " bytes, copied %s%s, %" PRIu64
                   " submissions so far",
                   mover->ordinal, address, block.id, block.address, block.bytes,
                   spw_counter_get(&mover->counters->moves), flight->bytes,
                   flight->copied ? "with the gate open" : "",
                   !behind_gate     ? ""
                   : flight->copied ? " and closed"
                                    : "with the gate closed",
                   spw_migrate_barrier_submissions());
}

/* After a commit that failed: what cannot be reached is asked of the driver again and again, for
 * the program would fail as soon as it uses it. */
static enum spw_err mend(struct spw_pool *pool, struct spw_move *move)
{
    (void)move;
    return spw_pool_move_remap_lost(pool);
}

static void insist(struct spw_migration *mover)
{
    char size[SPW_SIZE_TEXT];
    uint64_t address, bytes;

    if (await(mend, mover->pool, NULL, INSIST_NS) == SPW_OK) {
        return;
    }
    address = spw_pool_move_lost(mover->pool, &bytes);
    spw_log_always("device %d: the driver does not give back access to %s at 0x%" PRIx64
                   " after a move: "
                   "what uses it fails until it does; it is asked again before all work",
                   mover->ordinal, spw_size_text(bytes, size), address);
}

/* ---- what the first copy is worth ---- */

/* What is known of what was submitted since the move began. */
static enum spw_access_log_verdict judge(const struct spw_migration *mover,
                                         const struct spw_flight *flight)
{
    uint64_t submissions = spw_migrate_barrier_submissions();

    if (submissions == flight->watched.since.submissions) {
        return SPW_ACCESS_LOG_UNTOUCHED;
    }
    /* What the thread itself has under way may be noted and not counted. */
    return mover->heat == NULL || mover->inside
               ? SPW_ACCESS_LOG_TOUCHED
               : spw_migrate_access_log_judge(mover->heat, &flight->watched, submissions);
}

static enum spw_validation_worth weigh(const struct spw_migration *mover,
                                       const struct spw_flight *flight)
{
    struct spw_predictor_course course;

    if (mover->trust) {
        return SPW_VALIDATION_BELIEF;
    }
    if (!mover->audit || !flight->foreseen) {
        return SPW_VALIDATION_NONE;
    }
    course = spw_migrate_access_log_course(mover->heat);
    return spw_migrate_validation_weigh(&mover->evidence, &course);
}

static void note_finding(struct spw_migration *mover, const struct spw_flight *flight,
                         enum spw_validation_finding finding)
{
    struct spw_predictor_course course;

    if (flight->foreseen) {
        course = spw_migrate_access_log_course(mover->heat);
    }
    spw_migrate_validation_note(&mover->evidence, flight->foreseen ? &course : NULL, finding);
}

/* With the gate open: looks at the first copy if it is to be compared with the second. What cannot
 * be looked at proves nothing. */
static void take_sample(struct spw_migration *mover, struct spw_flight *flight)
{
    flight->sampled =
        flight->copied && judge(mover, flight) == SPW_ACCESS_LOG_UNNAMED &&
        weigh(mover, flight) == SPW_VALIDATION_AUDIT &&
        spw_pool_move_sample(mover->pool, flight->move, mover->evidence.audits) == SPW_OK;
}

/* With the gate closed: whether the first copy cannot stand. *ret_audit: it is only not known. */
static bool is_stale(struct spw_migration *mover, const struct spw_flight *flight, bool *ret_audit)
{
    enum spw_access_log_verdict verdict = judge(mover, flight);

    *ret_audit = false;
    if (!flight->copied) {
        return true;
    }
    if (verdict == SPW_ACCESS_LOG_UNTOUCHED) {
        note_finding(mover, flight, SPW_VALIDATION_OF_USE);
        return false;
    }
    if (verdict == SPW_ACCESS_LOG_UNNAMED && flight->sampled) {
        *ret_audit = true;
        return true;
    }
    if (verdict == SPW_ACCESS_LOG_UNNAMED && weigh(mover, flight) == SPW_VALIDATION_BELIEF) {
        note_finding(mover, flight, SPW_VALIDATION_BELIEVED);
        spw_counter_add(&mover->counters->believed_moves, 1);
        return false;
    }
    note_finding(mover, flight, SPW_VALIDATION_IN_VAIN);
    return true;
}

/* Compares both copies. */
static void audit(struct spw_migration *mover, struct spw_flight *flight)
{
    uint64_t granule;

    if (spw_pool_move_compare(mover->pool, flight->move, &granule) != SPW_OK) {
        return;
    }
    spw_counter_add(&mover->counters->audits, 1);
    spw_counter_add(&mover->counters->failed_audits, granule != 0);
    note_finding(mover, flight, granule != 0 ? SPW_VALIDATION_WRONG : SPW_VALIDATION_CLEAN);
    flight->unnamed = granule;
}

/* Who is charged with what was written to without being named. */
static void tell_unnamed(struct spw_migration *mover, struct spw_flight *flight)
{
    char size[SPW_SIZE_TEXT], site[256], before[192] = "";
    struct spw_block block = {.address = flight->unnamed};

    if (flight->unnamed == 0) {
        return;
    }
    (void)spw_pool_find(mover->pool, flight->unnamed, &block);
    mover->label(block.site, site, sizeof(site));
    if (mover->evidence.believed > 0) {
        (void)snprintf(before, sizeof(before),
                       "; but %" PRIu64 " moves before it were not copied "
                       "again, and what was written so during one of them is lost "
                       "(SPILLWAY_OVERLAP=careful copies all again)",
                       mover->evidence.believed);
    }
    spw_log_always(
        "device %d: a kernel wrote to memory that no argument names, while it was moved: to "
        "the block of %s at 0x%" PRIx64 " (%s). Its move lost nothing, and from now on memory "
        "is copied only while submissions are held back%s",
        mover->ordinal, spw_size_text(block.bytes, size), block.address, site, before);
    flight->unnamed = 0;
}

/* ---- beginning and ending ---- */

/* Moves that are abandoned cost time and gain nothing: the next ones are left out. */
static void note_outcome(struct spw_migration *mover, enum spw_err err)
{
    if (err == SPW_OK) {
        spw_counter_add(&mover->counters->moves, 1);
        mover->next_skip = 1;
        return;
    }
    spw_counter_add(&mover->counters->abandoned_moves, 1);
    mover->skip = mover->next_skip;
    mover->next_skip =
        mover->next_skip < MOST_SKIPPED ? 2 * mover->next_skip + 1 : mover->next_skip;
}

bool spw_migrate_migration_clear(struct spw_migration *mover)
{
    struct spw_move *held = mover->to_clear;

    mover->to_clear = NULL;
    if (held != NULL) {
        (void)spw_pool_move_end(mover->pool, held);
    }
    return held != NULL;
}

/* Of a move that is not under way any more. */
static void end_move(struct spw_migration *mover, const struct spw_flight *flight, enum spw_err err)
{
    note_outcome(mover, err);
    (void)spw_migrate_migration_clear(mover);
    mover->to_clear = flight->move;
    spw_pool_move_leave(mover->pool, flight->move);
    if (mover->heat != NULL) {
        spw_migrate_access_log_end_move(mover->heat, &flight->watched);
    }
}

/* Whether to copy before the gate is closed. */
static bool copies_first(struct spw_migration *mover, const struct spw_flight *flight)
{
    struct spw_predictor_course course;

    if (!mover->overlap || mover->trust) {
        return mover->overlap;
    }
    if (flight->foreseen) {
        course = spw_migrate_access_log_course(mover->heat);
    }
    return spw_migrate_validation_begin(&mover->evidence, flight->foreseen ? &course : NULL);
}

/* Notes what moves. */
static void watch(struct spw_migration *mover, struct spw_flight *flight)
{
    struct spw_access_log_move *watched = &flight->watched;

    watched->count = spw_pool_move_places(mover->pool, flight->move, watched->places);
    flight->bytes = watched->count * mover->granule_bytes;
    if (mover->heat != NULL) {
        spw_migrate_access_log_begin_move(mover->heat, watched);
    }
}

/* Notes since when it is watched: what is copied is what was there then. */
static void note_since(struct spw_migration *mover, struct spw_flight *flight,
                       const struct spw_access_log_moment *since)
{
    uint64_t submissions = spw_migrate_barrier_submissions();

    flight->watched.since = (struct spw_access_log_moment){.submissions = submissions};
    if (mover->heat != NULL) {
        flight->watched.since =
            since != NULL ? *since : spw_migrate_access_log_now(mover->heat, submissions);
    }
}

/* Makes the first copy of a move, if that is likely to be of use. */
static enum spw_err start(struct spw_migration *mover, struct spw_flight *flight,
                          const struct spw_access_log_moment *since, bool after_all)
{
    note_since(mover, flight, since);
    flight->waits = false;
    flight->copied = copies_first(mover, flight);
    return flight->copied ? spw_pool_move_copy(mover->pool, flight->move, after_all) : SPW_OK;
}

/* The same for the move behind the first one, if it waits for that. */
static void start_next(struct spw_migration *mover, bool at_rest)
{
    struct spw_flight *next = &mover->flights[(mover->first + 1) % SPW_MOVES];
    enum spw_err err;

    if (mover->under_way < 2 || !next->waits) {
        return;
    }
    err = start(mover, next, /* since */ NULL, /* after_all */ !at_rest);
    if (err != SPW_OK) {
        mover->under_way--;
        end_move(mover, next, err);
    }
}

/* A move that has begun. */
static enum spw_err set_out(struct spw_migration *mover, struct spw_flight *flight,
                            const struct spw_access_log_moment *since)
{
    enum spw_err err = SPW_OK;

    watch(mover, flight);
    flight->sampled = flight->rest = flight->copied = false;
    flight->unnamed = 0;
    flight->waits = mover->overlap && !mover->trust && mover->under_way > 0;
    if (!flight->waits) {
        err = start(mover, flight, since, /* after_all */ since == NULL);
    }
    if (err != SPW_OK) {
        end_move(mover, flight, err);
        (void)spw_migrate_migration_clear(mover);
    }
    return err;
}

/* ---- the closed phase ---- */

static enum spw_err copy_closed(struct spw_migration *mover, struct spw_flight *flight)
{
    enum spw_err err = spw_pool_move_copy(mover->pool, flight->move, /* after_all */ false);

    spw_counter_add(&mover->counters->second_copies, flight->copied);
    if (err == SPW_OK) {
        err = await(spw_pool_move_poll, mover->pool, flight->move,
                    mover->wait_ns + flight->bytes / 1024 * COPY_NS_PER_KIB);
    }
    return err;
}

/* With the gate closed and the device at rest: makes sure of the copies, exchanges the chunks. */
static enum spw_err exchange(struct spw_migration *mover, struct spw_flight *flight,
                             uint64_t *ret_bytes)
{
    bool is_audit, again = is_stale(mover, flight, &is_audit);
    enum spw_err err = again ? copy_closed(mover, flight) : SPW_OK;
    uint64_t wrong;

    if (err == SPW_OK && is_audit) {
        audit(mover, flight);
    }
    if (err == SPW_OK && mover->verify) {
        err = spw_pool_move_hash(mover->pool, flight->move);
    }
    if (err != SPW_OK) {
        return err;
    }
    start_next(mover, /* at_rest */ true);
    err = spw_pool_move_commit(mover->pool, flight->move, ret_bytes);
    if (err != SPW_OK) {
        insist(mover);
    }
    if (mover->verify) {
        wrong = spw_pool_move_verify(mover->pool, flight->move);
        if (wrong != 0) {
            report_mismatch(mover, flight, again, wrong);
        }
    }
    return err;
}

/* Whether all that was submitted since the copies began is known, and trusted to touch what it
 * names and no more. With the gate open that may change. */
static bool tells(const struct spw_migration *mover, const struct spw_flight *flight)
{
    return mover->trust && !flight->rest && flight->copied && !mover->verify &&
           mover->heat != NULL && !mover->inside &&
           spw_migrate_access_log_tells(mover->heat, &flight->watched.since,
                                        spw_migrate_barrier_submissions());
}

/* With the gate closed, beside what the device does: exchanges the chunks of what was not named
 * since the copies began, and leaves the rest where it is. */
static enum spw_err exchange_at_work(struct spw_migration *mover, const struct spw_flight *flight,
                                     uint64_t *ret_bytes)
{
    const struct spw_access_log_move *watched = &flight->watched;
    enum spw_err err;

    for (size_t i = 0; i < watched->count; i++) {
        if (spw_migrate_access_log_is_named(mover->heat, &watched->since,
                                            watched->places[i].granule)) {
            spw_pool_move_leave_out(mover->pool, flight->move, watched->places[i].granule);
        }
    }
    err = spw_pool_move_commit(mover->pool, flight->move, ret_bytes);
    if (err != SPW_OK) {
        insist(mover);
        return err;
    }
    spw_counter_add(&mover->counters->moves_at_work, *ret_bytes > 0);
    return *ret_bytes > 0 ? SPW_OK : SPW_E_AGAIN;
}

static enum spw_err close_and_exchange(struct spw_migration *mover, struct spw_flight *flight,
                                       uint64_t *ret_bytes)
{
    uint64_t begin = spw_clock_ns();
    enum spw_err err = SPW_E_AGAIN;

    if (spw_migrate_barrier_quiesce(mover->wait_ns)) {
        mover->at_work = tells(mover, flight);
        if (mover->at_work) {
            err = exchange_at_work(mover, flight, ret_bytes);
        } else {
            err = await(spw_pool_move_drain, mover->pool, flight->move, mover->wait_ns);
            err = err == SPW_OK ? exchange(mover, flight, ret_bytes) : err;
        }
        spw_migrate_barrier_resume();
    }
    spw_counter_add(&mover->counters->closed_ns, spw_clock_ns() - begin);
    tell_unnamed(mover, flight);
    return err;
}

enum spw_err spw_migrate_migration_begin(struct spw_migration *mover,
                                         const struct spw_move_request *wish, bool foreseen,
                                         const struct spw_access_log_moment *since)
{
    struct spw_flight *flight = &mover->flights[(mover->first + mover->under_way) % SPW_MOVES];
    enum spw_err err;

    if (mover->under_way == SPW_MOVES) {
        return SPW_E_AGAIN;
    }
    (void)spw_migrate_migration_clear(mover);
    if (mover->skip > 0) {
        mover->skip--;
        return SPW_E_AGAIN;
    }
    flight->foreseen = foreseen && mover->heat != NULL;
    err = spw_pool_move_begin(mover->pool, wish, &flight->move);
    if (err == SPW_OK) {
        err = set_out(mover, flight, since);
    }
    mover->under_way += err == SPW_OK;
    return err;
}

void spw_migrate_migration_rest(struct spw_migration *mover)
{
    mover->flights[(mover->first + mover->under_way - 1) % SPW_MOVES].rest = true;
}

bool spw_migrate_migration_is_ready(struct spw_migration *mover)
{
    return spw_pool_move_poll(mover->pool, mover->flights[mover->first].move) != SPW_E_AGAIN;
}

/* So that with the gate closed there is little left to wait for. */
static enum spw_err come_to_rest(struct spw_migration *mover, struct spw_flight *flight,
                                 uint64_t patience_ns)
{
    enum spw_err err = spw_pool_move_drain(mover->pool, flight->move);

    take_sample(mover, flight);
    return err == SPW_E_AGAIN ? await(spw_pool_move_drain, mover->pool, flight->move, patience_ns)
                              : err;
}

enum spw_err spw_migrate_migration_finish(struct spw_migration *mover, uint64_t patience_ns,
                                          uint64_t *ret_bytes)
{
    struct spw_flight *flight = &mover->flights[mover->first];
    uint64_t begin = spw_clock_ns();
    /* What is refused to what was lost would be refused to this one too. */
    enum spw_err err = spw_pool_move_remap_lost(mover->pool);

    *ret_bytes = 0;
    mover->inside = spw_migrate_barrier_inside();
    if (err == SPW_OK && flight->copied) {
        err = await(spw_pool_move_poll, mover->pool, flight->move, patience_ns);
    }
    if (err == SPW_OK && !tells(mover, flight)) {
        err = come_to_rest(mover, flight, patience_ns);
    }
    if (err == SPW_OK) {
        err = close_and_exchange(mover, flight, ret_bytes);
    }
    start_next(mover, /* at_rest */ false);
    mover->first = (mover->first + 1) % SPW_MOVES;
    mover->under_way--;
    end_move(mover, flight, err);
    spw_counter_add(&mover->counters->stall_ns, spw_clock_ns() - begin);
    return err;
}

enum spw_err spw_migrate_migration_move(struct spw_migration *mover,
                                        const struct spw_move_request *wish,
                                        const struct spw_access_log_moment *since,
                                        uint64_t patience_ns, uint64_t *ret_bytes)
{
    enum spw_err err = spw_migrate_migration_begin(mover, wish, /* foreseen */ false, since);

    *ret_bytes = 0;
    if (err == SPW_OK) {
        err = spw_migrate_migration_finish(mover, patience_ns, ret_bytes);
        (void)spw_migrate_migration_clear(mover);
    }
    return err;
}
