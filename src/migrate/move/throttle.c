#include "migrate/move/throttle.h"

#include "common/minmax.h"
#include "migrate/move/barrier.h"
#include "migrate/tuning.h"
#include "system/backoff.h"
#include "system/clock.h"

void spw_migrate_throttle_init(struct spw_throttle *throttle, struct spw_pool *pool,
                               uint64_t wait_ns, bool guarded)
{
    throttle->device_marks.pool = throttle->stream_marks.pool = pool;
    throttle->wait_ns = wait_ns;
    throttle->guarded = guarded;
}

const struct spw_access_log_snapshot *spw_migrate_throttle_completed(struct spw_throttle *throttle,
                                                                     struct spw_access_log *log)
{
    const struct spw_access_log_snapshot *then =
        throttle->guarded ? spw_migrate_progress_completed(&throttle->device_marks) : NULL;
    struct spw_access_log_snapshot now;

    if (then == NULL) {
        return NULL;
    }
    now = spw_migrate_access_log_snapshot(log, spw_migrate_barrier_submissions());
    return now.submissions - then->submissions == now.complete - then->complete ? then : NULL;
}

uint64_t spw_migrate_throttle_moment(uint64_t period)
{
    return spw_max(period / SPW_TUNE_PERIOD_SHARE, SPW_TUNE_MIN_EVENTS);
}

uint64_t spw_migrate_throttle_lead(const struct spw_throttle *throttle, uint64_t period,
                                   bool migrating)
{
    uint64_t moment = spw_migrate_throttle_moment(period);

    return throttle->guarded || migrating ? moment : spw_max(period / SPW_TUNE_LEAD_SHARE, moment);
}

/* Waits until the device has completed all work before an event. */
static bool await_event(struct spw_throttle *throttle, uint64_t event,
                        spw_migrate_throttle_meanwhile *meanwhile, void *cookie)
{
    struct spw_backoff backoff = {.limit_ns = throttle->wait_ns};
    uint64_t worked_ns = 0;

    while (!spw_migrate_progress_has_passed(&throttle->stream_marks, event)) {
        if (meanwhile != NULL) {
            uint64_t begin = spw_clock_ns();

            meanwhile(cookie);
            worked_ns += spw_clock_ns() - begin;
        }
        if (worked_ns >= throttle->wait_ns || !spw_backoff_pause(&backoff)) {
            return false;
        }
    }
    return true;
}

void spw_migrate_throttle_submitter(struct spw_throttle *throttle, struct spw_access_log *log,
                                    const struct spw_stream *stream, uint64_t period, uint64_t lead,
                                    bool device_busy, spw_migrate_throttle_meanwhile *meanwhile,
                                    void *cookie)
{
    const struct spw_access_log_snapshot now =
        spw_migrate_access_log_snapshot(log, spw_migrate_barrier_submissions());
    uint64_t interval = period > 0 ? spw_migrate_throttle_moment(period) / SPW_TUNE_MARK_SHARE : 0;

    if (now.events - throttle->marked < interval) {
        return;
    }
    if (throttle->guarded) {
        spw_migrate_progress_set(&throttle->device_marks, NULL, &now);
    }
    if (stream != NULL) {
        spw_migrate_progress_set(&throttle->stream_marks, stream, &now);
    }
    throttle->marked = now.events;
    if ((throttle->guarded && !device_busy) || period == 0 || now.events < lead) {
        return;
    }
    if (throttle->pause > 0) {
        throttle->pause--;
    } else if (!await_event(throttle, now.events - lead, meanwhile, cookie)) {
        throttle->pause = SPW_TUNE_MAX_BACKOFF;
    }
}
