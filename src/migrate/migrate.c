#include "migrate/migrate.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/size.h"
#include "migrate/barrier.h"
#include "migrate/progress.h"
#include "migrate/migration.h"

enum state { UNOPENED, OPEN, CLOSED };

enum {
    PATIENCE = 10,          /* times the wait that is set, for room that is needed */
    YIELD_BYTES = 64 << 20, /* moved when somebody else needs memory */
    COLD_AGE = 64,          /* blocks freed since a block was last used that make it cold */
    SHARE_AT_ONCE = 64,     /* part of the limit that is moved at once, at least */
    SHARE_AT_WORK = 32,     /* the same while the device need not rest for it */
    SHARE_AT_MOST = 16,     /* that is moved for one request, unless more is missing */
    SHARE_KEPT_FREE = 16,   /* part of the limit that is not filled by promotion */
    COLD_EVENTS = 64,  /* allocations, uses and frees since a block was used that make it cold */
    BATCH_SHARE = 32,  /* part of the limit that is moved at once ahead of use, each way, */
    BATCH_SMALL = 96,  /* or less, down to this part of it, */
    BATCH_OF_HOST = 8, /* where it is more than this part of what the host holds */
    BATCH_LEAST = 4,   /* granules */
    BATCH_MOST = SPW_MOVE_GRANULES / 2,
    WORTH_SHARE = 8,    /* part of a batch that is worth a move for which nothing rests */
    SOON_SHARE = 16,    /* part of a period within which a need does not wait for a full batch */
    MAPPED_AT_WORK = 4, /* granules mapped beyond a block then: calls take the program's time */
    LOOK_SHARE = 64,    /* part of a period after which it is looked again what to do */
    LOOK_AT_WORK = 128, /* the same while the device need not rest for moves */
    LOOK_LEAST = 16,    /* events, at least */
    LOOK_TIME = 8,      /* part of the time that is spent on looking in vain, at most */
    NEAR_SHARE = 8,     /* part of a period that the program may be ahead of the device */
    NEAR_MOVING = 64,   /* the same while a move is under way for which the device must rest */
    NEAR_TRUSTED = 32,  /* the same where it need not */
    NEAR_LEAST = 32,    /* events, at least */
    MARK_SHARE = 4,     /* part of the least of these, between marks */
    UNHELD = 64,        /* marks */
    ASK_EVERY = 8       /* calls, for which a copy under way is asked once whether it is done */
};

struct spw_migrate {
    struct spw_migrate_config config;
    struct spw_lock lock;
    enum state state;
    bool moves;           /* memory can be moved, not only placed */
    bool needed;          /* memory was short */
    enum spw_err refused; /* why the host cannot be used */
    bool pins;            /* blocks are placed in page-locked memory: no chunks can be had */
    struct spw_migration mover;
    struct spw_access_log heat;
    struct spw_progress marks; /* how far the device is, where arguments are trusted */
    struct spw_progress pace;  /* how far the streams are that the program submits to */
    uint64_t marked;           /* the event at which the last mark was set */
    uint64_t rests_until;      /* by the clock: it is not looked again what to move */
    uint64_t period;           /* of the order of use, in events; 0: not known */
    uint32_t unheld;           /* marks at which it is not held back, since that was of no use */
    _Atomic bool watching;     /* the heat is noted */
    _Atomic uint32_t calls;    /* since it was last asked whether there is something to do */
    _Atomic uint64_t look_at;  /* the event at which it is looked what to move */
    atomic_flag announced;     /* the first spill was told */
    _Atomic uint64_t steps;    /* as the program has marked them */
};

static uint64_t granule_of(const struct spw_pool *pool)
{
    uint64_t address, bytes, granule;

    spw_pool_large_range(pool, &address, &bytes, &granule);
    return granule;
}

enum spw_err spw_migrate_create(const struct spw_migrate_config *config,
                                struct spw_migrate **ret_tier)
{
    struct spw_migrate *tier = calloc(1, sizeof(*tier));

    if (tier == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    tier->config = *config;
    spw_lock_init(&tier->lock, SPW_LOCK_RANK_migrate);
    tier->mover = (struct spw_migration){.pool = config->pool,
                                         .counters = config->counters,
                                         .ordinal = config->ordinal,
                                         .granule_bytes = granule_of(config->pool),
                                         .wait_ns = config->move_wait_ns,
                                         .overlap = config->overlap,
                                         .trust = config->trust,
                                         .audit = config->audit,
                                         .verify = config->verify,
                                         .label = config->label,
                                         .next_skip = 1};
    tier->marks.pool = tier->pace.pool = config->pool;
    *ret_tier = tier;
    return SPW_OK;
}

void spw_migrate_destroy(struct spw_migrate *tier)
{
    if (tier == NULL) {
        return;
    }
    if (atomic_exchange(&tier->watching, false)) {
        spw_migrate_access_log_close(&tier->heat);
    }
    spw_lock_fini(&tier->lock);
    free(tier);
}

/* From the first shortage on it matters what is used. */
static void watch(struct spw_migrate *tier)
{
    if (tier->moves &&
        spw_migrate_access_log_open(&tier->heat, tier->config.pool, tier->config.counters)) {
        tier->mover.heat = &tier->heat;
        atomic_store(&tier->watching, true);
    }
}

/* Finds out whether the device can use the host's memory, unless that is known. */
static void find_out(struct spw_migrate *tier)
{
    enum spw_err err;

    if (tier->state != UNOPENED) {
        return;
    }
    err = spw_pool_open_host(tier->config.pool, tier->config.limit_bytes, &tier->moves);
    if (err == SPW_E_AGAIN) {
        return;
    }
    tier->state = err == SPW_OK ? OPEN : CLOSED;
    tier->pins = err == SPW_OK && spw_pool_uses_pinned(tier->config.pool);
    tier->refused = err;
}

/* At the first shortage, when what is missing is told. */
static bool open_tier(struct spw_migrate *tier)
{
    find_out(tier);
    if (tier->state == UNOPENED || tier->needed) {
        return tier->state == OPEN;
    }
    tier->needed = true;
    if (tier->state == OPEN) {
        watch(tier);
    }
    if (tier->state == CLOSED) {
        spw_log_always("device %d is full, and its memory cannot go on on the host (%s): `spillway "
                       "doctor` says what is missing",
                       tier->config.ordinal, spw_err_name(tier->refused));
    } else if (tier->pins) {
        spw_log_always("device %d cannot map memory of the host as its own: new blocks go to "
                       "page-locked memory and stay there; `spillway doctor` says what is missing",
                       tier->config.ordinal);
    }
    return tier->state == OPEN;
}

bool spw_migrate_has_room(struct spw_migrate *tier)
{
    const struct spw_counters *counters = tier->config.counters;
    bool room = spw_counter_get(&counters->host_used_bytes) < tier->config.limit_bytes;

    if (spw_lock_try(&tier->lock)) {
        room = room && tier->state != CLOSED;
        spw_unlock(&tier->lock);
    }
    return room;
}

void spw_migrate_prepare(struct spw_migrate *tier)
{
    spw_lock(&tier->lock);
    find_out(tier);
    spw_unlock(&tier->lock);
}

void spw_migrate_announce(struct spw_migrate *tier, const struct spw_request *request,
                          uint64_t host_bytes, bool moved)
{
    char went[SPW_SIZE_TEXT], block[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT], who[256];

    if (atomic_flag_test_and_set(&tier->announced)) {
        return;
    }
    tier->config.describe(request->site, who, sizeof(who));
    spw_log_always(
        "device %d is full: for a block of %s (%s), %s %s on the host now; up to %s of host "
        "memory may be used",
        tier->config.ordinal, spw_size_text(request->bytes, block), who,
        spw_size_text(host_bytes, went), moved ? "of older blocks are" : "of it are",
        spw_size_text(tier->config.limit_bytes, most));
}

static enum spw_err place(struct spw_migrate *tier, const struct spw_request *request,
                          struct spw_result *ret_result)
{
    struct spw_request spilling = *request;
    enum spw_err err;

    spilling.may_spill = true;
    err = spw_pool_alloc(tier->config.pool, &spilling, ret_result);
    if (err == SPW_OK && ret_result->host_bytes > 0) {
        spw_counter_add(&tier->config.counters->placed_bytes, ret_result->host_bytes);
        spw_counter_add(&tier->config.counters->spilled_bytes, ret_result->host_bytes);
        spw_migrate_announce(tier, request, ret_result->host_bytes, /* moved */ false);
    }
    return err;
}

/* The moment up to which all is done, so that what was not named since is at rest; NULL: not known,
 * or arguments do not tell, not even of what was submitted since, as far as can be said now. */
static const struct spw_access_log_moment *passed(struct spw_migrate *tier)
{
    const struct spw_access_log_moment *then =
        tier->config.trust ? spw_migrate_progress_passed(&tier->marks) : NULL;
    struct spw_access_log_moment now;

    if (then == NULL) {
        return NULL;
    }
    now = spw_migrate_access_log_now(&tier->heat, spw_migrate_barrier_submissions());
    return now.submissions - then->submissions == now.known - then->known ? then : NULL;
}

/* Moves blocks to the host that will not be used for long, or were not. */
static enum spw_err spill(struct spw_migrate *tier, uint64_t bytes, bool must, uint64_t *ret_bytes)
{
    struct spw_move_request wish = {
        .to = SPW_TIER_HOST, .bytes = bytes, .least_age = must ? 0 : COLD_AGE};
    struct spw_access_log_plan plan;
    struct spw_access_log_wish heat_wish = {
        .bytes = bytes, .most = SPW_MOVE_GRANULES, .least_age = must ? 0 : COLD_EVENTS};

    if (atomic_load(&tier->watching)) {
        heat_wish.passed = passed(tier);
        spw_migrate_access_log_plan(&tier->heat, &heat_wish, &plan);
        if (plan.count == 0 && heat_wish.passed != NULL) {
            heat_wish.passed = NULL;
            spw_migrate_access_log_plan(&tier->heat, &heat_wish, &plan);
        }
        wish.places = plan.places;
        wish.count = plan.count;
    }
    return spw_migrate_migration_move(&tier->mover, &wish, heat_wish.passed,
                                      PATIENCE * tier->config.move_wait_ns, ret_bytes);
}

/* What the device lacks for a request. */
static uint64_t missing_for(const struct spw_migrate *tier, uint64_t bytes)
{
    int64_t lacks = (int64_t)(bytes + tier->mover.granule_bytes) - spw_pool_room(tier->config.pool);

    return lacks > 0 ? (uint64_t)lacks : 0;
}

/* How much is to be moved for a request. Where the order of use is known, what the next ones need
 * goes ahead of them. Else usually as much as the request is of, so that the next one finds room as
 * well; for a large one that would throw out far more than is missing. */
static uint64_t enough_for(struct spw_migrate *tier, uint64_t bytes, uint64_t share)
{
    uint64_t limit = spw_counter_get(&tier->config.counters->limit_bytes);
    uint64_t missing = missing_for(tier, bytes), most = limit / SHARE_AT_MOST, events, period;

    if (atomic_load(&tier->watching) &&
        spw_migrate_access_log_knows(&tier->heat, &events, &period)) {
        return missing + (tier->mover.at_work ? share / WORTH_SHARE : share);
    }
    most = missing + share > most ? missing + share : most;
    bytes = bytes < most ? bytes : most;
    return bytes > share ? bytes : share;
}

/* Moves blocks to the host until there should be room. False when nothing was moved. */
static bool make_room(struct spw_migrate *tier, const struct spw_request *request)
{
    bool must = request->placement != NULL && request->placement->on_device;
    uint64_t share = spw_counter_get(&tier->config.counters->limit_bytes) /
                     (tier->mover.at_work ? SHARE_AT_WORK : SHARE_AT_ONCE);
    uint64_t wanted = enough_for(tier, request->bytes, share), moved = 0, bytes;
    enum spw_err err = SPW_OK;

    while (moved < wanted && err == SPW_OK) {
        err = spill(tier, wanted - moved, must, &bytes);
        moved += bytes;
    }
    if (moved > 0) {
        spw_migrate_announce(tier, request, moved, /* moved */ true);
    }
    return moved > 0;
}

/* ---- ahead of use ---- */

/* Ends the move that began first, if one is under way. */
static void finish(struct spw_migrate *tier)
{
    uint64_t bytes;

    if (tier->mover.under_way > 0) {
        (void)spw_migrate_migration_finish(&tier->mover, PATIENCE * tier->config.move_wait_ns,
                                           &bytes);
        spw_pool_map_ahead(tier->config.pool, tier->mover.at_work ? MAPPED_AT_WORK : 0);
    }
}

/* The same, at once. False when nothing can have changed for those who need room. */
static bool finish_now(struct spw_migrate *tier)
{
    finish(tier);
    return spw_migrate_migration_clear(&tier->mover);
}

static void finish_all(struct spw_migrate *tier)
{
    while (tier->mover.under_way > 0) {
        finish(tier);
    }
    (void)spw_migrate_migration_clear(&tier->mover);
}

/* How many granules are moved at once ahead of use, each way. */
static uint64_t batch_of(const struct spw_migrate *tier)
{
    uint64_t limit = spw_counter_get(&tier->config.counters->limit_bytes);
    uint64_t host = spw_counter_get(&tier->config.counters->host_bytes);
    uint64_t bytes = host / BATCH_OF_HOST, batch;

    bytes = bytes < limit / BATCH_SMALL ? limit / BATCH_SMALL : bytes;
    bytes = bytes > limit / BATCH_SHARE ? limit / BATCH_SHARE : bytes;
    batch = bytes / tier->mover.granule_bytes;
    return batch < BATCH_LEAST ? BATCH_LEAST : batch > BATCH_MOST ? BATCH_MOST : batch;
}

/* False when it cannot be begun; so are the next ones where there is nothing to begin. */
static bool begin_move(struct spw_migrate *tier, const struct spw_access_log_plan *plan,
                       const struct spw_access_log_moment *since)
{
    const struct spw_move_request wish = {.places = plan->places, .count = plan->count};

    if (spw_migrate_migration_begin(&tier->mover, &wish, /* foreseen */ true, since) != SPW_OK) {
        return false;
    }
    spw_counter_add(&tier->config.counters->prefetches, 1);
    return true;
}

/* A part of a period in which the device is near enough. */
static uint64_t near_of(const struct spw_migrate *tier, uint64_t share)
{
    uint64_t near = tier->period / share;

    return near < NEAR_LEAST ? NEAR_LEAST : near;
}

/* How many events the program may be ahead of the device. */
static uint64_t ahead_of(const struct spw_migrate *tier)
{
    if (tier->config.trust) {
        return near_of(tier, NEAR_TRUSTED);
    }
    return near_of(tier, tier->mover.under_way > 0 ? NEAR_MOVING : NEAR_SHARE);
}

/* What is used again and again while it is on the host is never at rest while the device is not,
 * and is used over the link until it is fetched: the device comes to rest for it. */
static bool begin_hot(struct spw_migrate *tier, struct spw_access_log_wish wish)
{
    struct spw_access_log_plan plan;

    wish.hot = true;
    spw_migrate_access_log_plan(&tier->heat, &wish, &plan);
    if (plan.count == 0 || plan.at >= ahead_of(tier) ||
        !begin_move(tier, &plan, /* since */ NULL)) {
        return false;
    }
    spw_migrate_migration_rest(&tier->mover);
    return true;
}

/* Begins to move what will be used, and in its place what will not, if that is known and either
 * enough to be worth the while or needed soon. */
static bool begin_foreseen(struct spw_migrate *tier)
{
    uint64_t batch = batch_of(tier);
    uint64_t worth = tier->mover.at_work ? batch / WORTH_SHARE : batch;
    struct spw_access_log_plan plan;
    struct spw_access_log_wish wish = {.most = (size_t)batch, .passed = passed(tier)};

    /* Room to fetch to while others go; what is kept free is missing to the program. */
    wish.kept = batch / 2 * tier->mover.granule_bytes;
    spw_migrate_access_log_plan(&tier->heat, &wish, &plan);
    if (plan.hot > 0 && begin_hot(tier, wish)) {
        return true;
    }
    return plan.count > 0 && (plan.count >= worth || plan.at < tier->period / SOON_SHARE) &&
           begin_move(tier, &plan, wish.passed);
}

/* Looks what to do next, if that is known. It takes time of the program's own, and more on a device
 * with more memory. */
static void begin(struct spw_migrate *tier)
{
    uint64_t events, pause, worked;

    if (spw_clock_ns() < tier->rests_until) {
        return;
    }
    worked = spw_clock_worked_ns();
    if (spw_migrate_access_log_knows(&tier->heat, &events, &tier->period) &&
        !begin_foreseen(tier)) {
        tier->rests_until = spw_clock_ns() + (LOOK_TIME - 1) * (spw_clock_worked_ns() - worked);
    }
    pause = tier->period / (tier->mover.at_work ? LOOK_AT_WORK : LOOK_SHARE);
    atomic_store(&tier->look_at, events + (pause > LOOK_LEAST ? pause : LOOK_LEAST));
    atomic_store(&tier->calls, 0);
}

/* Marks how far the program is, and holds it back while the device is far behind: what it submits
 * is used where it is by then, and what the device still has to do must be waited for before memory
 * is exchanged, while nothing is copied; where arguments are trusted, what it still has to use
 * cannot move. How far it is behind is told by the stream of the call, as the device's own marks
 * come behind what is being copied as well. Held back in vain, the program is left alone for a
 * while: the device may be waiting for what it submits next. */
static void keep_near(struct spw_migrate *tier, const struct spw_stream *stream)
{
    const struct spw_access_log_moment now =
        spw_migrate_access_log_now(&tier->heat, spw_migrate_barrier_submissions());
    uint64_t ahead = ahead_of(tier);
    uint64_t apart = tier->period > 0 ? near_of(tier, NEAR_MOVING) / MARK_SHARE : 0;

    if (now.events - tier->marked < apart) {
        return;
    }
    if (tier->config.trust) {
        spw_migrate_progress_set(&tier->marks, NULL, &now);
    }
    if (stream != NULL) {
        spw_migrate_progress_set(&tier->pace, stream, &now);
    }
    tier->marked = now.events;
    if ((tier->config.trust && !tier->mover.at_work) || tier->period == 0 || now.events < ahead) {
        return;
    }
    if (tier->unheld > 0) {
        tier->unheld--;
    } else if (!spw_migrate_progress_await(&tier->pace, now.events - ahead,
                                           tier->config.move_wait_ns)) {
        tier->unheld = UNHELD;
    }
}

/* Goes on with moving ahead of use. `now`: what is moved is wanted, and must have come if it is of
 * one of the addresses. So that the link has work all the time, the next move is begun when the
 * copies of one are done, to be copied from when that is exchanged; where arguments are trusted,
 * and the device did not have to rest, while the first is copied. */
static void advance(struct spw_migrate *tier, bool now, const uint64_t *addresses, size_t count)
{
    atomic_store(&tier->calls, 0);
    if (tier->mover.under_way == 0) {
        begin(tier);
    } else if (now || spw_migrate_migration_is_ready(&tier->mover)) {
        if (!tier->config.trust) {
            begin(tier);
        }
        do {
            finish(tier);
        } while (tier->mover.under_way > 0 &&
                 spw_migrate_access_log_awaits(&tier->heat, addresses, count));
        if (tier->mover.at_work) {
            begin(tier);
        }
    } else if (tier->mover.at_work && tier->mover.under_way < SPW_MOVES &&
               spw_migrate_access_log_events(&tier->heat) >= atomic_load(&tier->look_at)) {
        begin(tier);
    }
}

bool spw_migrate_watches(const struct spw_migrate *tier)
{
    return atomic_load_explicit(&tier->watching, memory_order_acquire);
}

void spw_migrate_allocated(struct spw_migrate *tier, uint64_t address, uint64_t bytes,
                           uint32_t site)
{
    if (spw_migrate_watches(tier)) {
        spw_migrate_access_log_alloc(&tier->heat, address, bytes, site);
    }
}

void spw_migrate_freed(struct spw_migrate *tier, uint64_t address)
{
    if (spw_migrate_watches(tier)) {
        spw_migrate_access_log_free(&tier->heat, address);
    }
}

bool spw_migrate_follows(const struct spw_migrate *tier)
{
    return spw_migrate_watches(tier) && tier->config.overlap &&
           atomic_load_explicit(&tier->calls, memory_order_relaxed) >= ASK_EVERY;
}

void spw_migrate_expect(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                        const struct spw_stream *stream, bool may_move)
{
    bool awaited;

    if (!spw_migrate_watches(tier) || !tier->config.overlap) {
        return;
    }
    awaited = spw_migrate_access_log_awaits(&tier->heat, addresses, count);
    if ((!awaited && atomic_fetch_add(&tier->calls, 1) < ASK_EVERY) || !may_move ||
        !spw_lock_try(&tier->lock)) {
        return;
    }
    keep_near(tier, stream);
    if (tier->mover.under_way > 0 ||
        spw_migrate_access_log_events(&tier->heat) >= atomic_load(&tier->look_at)) {
        advance(tier, awaited, addresses, count);
    }
    spw_unlock(&tier->lock);
}

void spw_migrate_use(struct spw_migrate *tier, const uint64_t *addresses, size_t count, bool kernel)
{
    if (spw_migrate_watches(tier)) {
        spw_migrate_access_log_record(&tier->heat, addresses, count, kernel);
    }
}

void spw_migrate_use_among(struct spw_migrate *tier, const uint64_t *addresses, size_t count)
{
    if (spw_migrate_watches(tier)) {
        spw_migrate_access_log_record_partial(&tier->heat, addresses, count);
    }
}

void spw_migrate_meet_kernel(struct spw_migrate *tier)
{
    if (spw_migrate_watches(tier)) {
        spw_migrate_access_log_meet_kernel(&tier->heat);
    }
}

void spw_migrate_mark_step(struct spw_migrate *tier)
{
    atomic_fetch_add_explicit(&tier->steps, 1, memory_order_relaxed);
}

/* ---- shortage and rest ---- */

bool spw_migrate_ready(struct spw_migrate *tier)
{
    bool ready;

    spw_lock(&tier->lock);
    ready = open_tier(tier) && !tier->pins;
    spw_unlock(&tier->lock);
    return ready;
}

bool spw_migrate_yield(struct spw_migrate *tier)
{
    struct spw_move_request wish = {.to = SPW_TIER_HOST, .bytes = YIELD_BYTES};
    uint64_t bytes = 0;

    spw_lock(&tier->lock);
    if (open_tier(tier) && tier->moves) {
        finish_all(tier);
        (void)spw_migrate_migration_move(&tier->mover, &wish, /* since */ NULL,
                                         PATIENCE * tier->config.move_wait_ns, &bytes);
    }
    spw_unlock(&tier->lock);
    return bytes > 0;
}

void spw_migrate_rest(struct spw_migrate *tier)
{
    const struct spw_counters *counters = tier->config.counters;
    struct spw_move_request wish = {.to = SPW_TIER_DEVICE};
    struct spw_pool_usage usage;
    uint64_t used, kept, bytes, events, period;

    if (spw_counter_get(&counters->host_used_bytes) == 0 || !spw_lock_try(&tier->lock)) {
        return;
    }
    if (atomic_load(&tier->watching) && tier->config.overlap &&
        (tier->mover.under_way > 0 ||
         spw_migrate_access_log_knows(&tier->heat, &events, &period))) {
        advance(tier, /* now */ false, NULL, 0);
        spw_unlock(&tier->lock);
        return;
    }
    spw_pool_usage(tier->config.pool, &usage);
    used = usage.live - (usage.host < usage.live ? usage.host : usage.live);
    kept = usage.limit / SHARE_KEPT_FREE;
    if (tier->moves && used + kept < usage.limit) {
        wish.bytes = usage.limit - used - kept;
        (void)spw_migrate_migration_move(&tier->mover, &wish, /* since */ NULL,
                                         tier->config.move_wait_ns, &bytes);
    }
    spw_unlock(&tier->lock);
}

static bool is_short(enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY;
}

enum spw_err spw_migrate_alloc(struct spw_migrate *tier, const struct spw_request *request,
                               enum spw_err refused, struct spw_result *ret_result)
{
    enum spw_err err = refused;
    bool open;

    spw_lock(&tier->lock);
    open = open_tier(tier);
    if (open && tier->moves && request->may_move) {
        while (is_short(err) && finish_now(tier)) {
            err = spw_pool_alloc(tier->config.pool, request, ret_result);
        }
        /* Twice: what is free may lie on granules that cannot be had whole. */
        for (int i = 0; i < 2 && is_short(err) && make_room(tier, request); i++) {
            err = spw_pool_alloc(tier->config.pool, request, ret_result);
        }
    }
    spw_unlock(&tier->lock);
    if (open && is_short(err) && (request->placement == NULL || !request->placement->on_device)) {
        err = place(tier, request, ret_result);
    }
    return is_short(err) ? refused : err;
}
