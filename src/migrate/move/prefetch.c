#include "migrate/move/prefetch.h"

#include "common/minmax.h"
#include "migrate/tuning.h"
#include "system/clock.h"

uint64_t spw_migrate_prefetch_batch_bytes(const struct spw_prefetch *prefetch)
{
    return spw_counter_get(&prefetch->migrator->counters->limit_bytes) / SPW_TUNE_BATCH_SHARE;
}

/* Finishes the oldest migration, if one is in flight. */
static void finish(struct spw_prefetch *prefetch)
{
    struct spw_migrator *migrator = prefetch->migrator;
    uint64_t bytes;

    if (migrator->in_flight > 0) {
        (void)spw_migrate_migration_finish(migrator, prefetch->patience_ns, &bytes);
        spw_pool_map_ahead(migrator->pool, migrator->device_busy ? SPW_TUNE_BATCH_MIN : 0);
    }
}

bool spw_migrate_prefetch_finish_one(struct spw_prefetch *prefetch)
{
    finish(prefetch);
    return spw_migrate_migration_release(prefetch->migrator);
}

void spw_migrate_prefetch_finish_all(struct spw_prefetch *prefetch)
{
    while (prefetch->migrator->in_flight > 0) {
        finish(prefetch);
    }
    (void)spw_migrate_migration_release(prefetch->migrator);
}

/* Largest number of granules in one migration, each way: small batches if little has spilled. */
static uint64_t batch_granules(const struct spw_prefetch *prefetch)
{
    const struct spw_migrator *migrator = prefetch->migrator;
    uint64_t host = spw_counter_get(&migrator->counters->host_bytes);
    uint64_t bytes =
        spw_min(host / SPW_TUNE_BATCH_HOST_SHARE, spw_migrate_prefetch_batch_bytes(prefetch));

    return spw_max(spw_min(bytes / migrator->granule_bytes, SPW_MOVE_GRANULES / 2),
                   SPW_TUNE_BATCH_MIN);
}

/* False when the migration could not begin. */
static bool begin_migration(struct spw_prefetch *prefetch, const struct spw_access_log_plan *plan,
                            const struct spw_access_log_snapshot *since)
{
    const struct spw_move_request move = {.places = plan->places, .count = plan->count};

    if (spw_migrate_migration_begin(prefetch->migrator, &move, SPW_MIGRATION_PLANNED, since) !=
        SPW_OK) {
        return false;
    }
    spw_counter_add(&prefetch->migrator->counters->prefetches, 1);
    return true;
}

static uint64_t lead(const struct spw_prefetch *prefetch)
{
    return spw_migrate_throttle_lead(prefetch->throttle, prefetch->period,
                                     prefetch->migrator->in_flight > 0);
}

/* Migrates granules on the host that submitted work uses all the time. They are never unused while
 * the device is busy. The device must idle for this. */
static bool start_hot_migration(struct spw_prefetch *prefetch, struct spw_access_log_goal goal)
{
    struct spw_access_log_plan *plan = &prefetch->hot_plan;

    goal.hot = true;
    spw_migrate_access_log_plan(prefetch->log, &goal, plan);
    return plan->count > 0 && plan->at < lead(prefetch) &&
           begin_migration(prefetch, plan, /* since */ NULL);
}

/* Begins a swap if the plan is large enough or urgent. */
static bool start_predicted_migration(struct spw_prefetch *prefetch,
                                      const struct spw_access_log_snapshot *completed)
{
    const struct spw_migrator *migrator = prefetch->migrator;
    uint64_t batch = batch_granules(prefetch);
    uint64_t least = migrator->device_busy ? batch / SPW_TUNE_BUSY_BATCH_SHARE : batch;
    struct spw_access_log_plan *plan = &prefetch->plan;
    struct spw_access_log_goal goal = {.most = (size_t)batch, .completed = completed};

    /* Room for fetches while victims leave. The program would lack any more. */
    goal.kept = batch / 2 * migrator->granule_bytes;
    spw_migrate_access_log_plan(prefetch->log, &goal, plan);
    if (plan->hot > 0 && start_hot_migration(prefetch, goal)) {
        return true;
    }
    return plan->count > 0 &&
           (plan->granules >= least || plan->at < spw_migrate_throttle_moment(prefetch->period)) &&
           begin_migration(prefetch, plan, goal.completed);
}

/* Makes a plan if there are predictions. Planning takes the program's time, and more on a device
 * with more memory, so a useless plan is followed by a pause. */
static void plan_next(struct spw_prefetch *prefetch)
{
    const struct spw_access_log_snapshot *completed;
    uint64_t events, worked;
    bool predicted;

    if (spw_clock_measured_ns() < prefetch->quiet_until) {
        return;
    }
    completed = spw_migrate_throttle_completed(prefetch->throttle, prefetch->log);
    worked = spw_clock_worked_ns();
    predicted = spw_migrate_access_log_find_period(prefetch->log, &events, &prefetch->period);
    spw_migrate_step_meter_look(&prefetch->meter, prefetch->migrator->counters, events,
                                prefetch->period);
    if (predicted && !start_predicted_migration(prefetch, completed)) {
        prefetch->quiet_until = spw_clock_measured_ns() +
                                (SPW_TUNE_PLAN_TIME_SHARE - 1) * (spw_clock_worked_ns() - worked);
    }
    atomic_store(&prefetch->plan_at, events + spw_migrate_throttle_moment(prefetch->period));
    atomic_store(&prefetch->calls, 0);
}

static bool is_plan_due(const struct spw_prefetch *prefetch)
{
    return spw_migrate_access_log_events(prefetch->log) >= atomic_load(&prefetch->plan_at);
}

/* To keep the link busy, the next migration begins before the switch of the first, when the first
 * is copied. With `guarded` and a busy device it begins while the first is being copied. */
void spw_migrate_prefetch_advance(struct spw_prefetch *prefetch, bool needed,
                                  const uint64_t *addresses, size_t count)
{
    struct spw_migrator *migrator = prefetch->migrator;

    atomic_store(&prefetch->calls, 0);
    if (migrator->in_flight == 0) {
        plan_next(prefetch);
    } else if (needed || spw_migrate_migration_is_copied(migrator)) {
        if (!migrator->guarded) {
            plan_next(prefetch);
        }
        do {
            finish(prefetch);
        } while (migrator->in_flight > 0 &&
                 spw_migrate_access_log_is_incoming(prefetch->log, addresses, count));
        if (migrator->device_busy) {
            plan_next(prefetch);
        }
    } else if (migrator->device_busy && migrator->in_flight < SPW_MOVES && is_plan_due(prefetch)) {
        plan_next(prefetch);
    }
}

bool spw_migrate_prefetch_is_due(const struct spw_prefetch *prefetch)
{
    return atomic_load_explicit(&prefetch->calls, memory_order_relaxed) >= SPW_TUNE_CHECK_INTERVAL;
}

bool spw_migrate_prefetch_count(struct spw_prefetch *prefetch)
{
    return atomic_fetch_add(&prefetch->calls, 1) >= SPW_TUNE_CHECK_INTERVAL;
}

/* Called while the throttle waits. A new plan is worth its time when the stream has completed more
 * work, or a migration has begun or ended. */
static void advance_meanwhile(void *cookie)
{
    struct spw_prefetch *prefetch = cookie;
    uint64_t completed = prefetch->throttle->stream_marks.completed.events;
    size_t in_flight = prefetch->migrator->in_flight;

    if (completed != prefetch->seen_completed || in_flight != prefetch->seen_in_flight) {
        prefetch->seen_completed = completed;
        prefetch->seen_in_flight = in_flight;
        atomic_store(&prefetch->plan_at, 0);
    }
    if (in_flight > 0 || is_plan_due(prefetch)) {
        spw_migrate_prefetch_advance(prefetch, /* needed */ false, NULL, 0);
    }
}

void spw_migrate_prefetch_before_submit(struct spw_prefetch *prefetch, const uint64_t *addresses,
                                        size_t count, const struct spw_stream *stream)
{
    spw_migrate_throttle_submitter(prefetch->throttle, prefetch->log, stream, prefetch->period,
                                   lead(prefetch), prefetch->migrator->device_busy,
                                   prefetch->migrator->guarded ? advance_meanwhile : NULL,
                                   prefetch);
    if (prefetch->migrator->in_flight > 0 || is_plan_due(prefetch)) {
        bool needed = spw_migrate_access_log_is_incoming(prefetch->log, addresses, count);

        spw_migrate_prefetch_advance(prefetch, needed, addresses, count);
    }
}
