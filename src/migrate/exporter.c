#include "migrate/exporter.h"

#include "migrate/move/barrier.h"
#include "migrate/tuning.h"
#include "system/backoff.h"
#include "system/clock.h"

enum { COPY_NS_PER_KIB = SPW_TUNE_COPY_NS_PER_KIB, STEP_KIB = 512 * 1024 };

/* Polls until the answer is not SPW_E_AGAIN, at most for most_ns. */
static enum spw_err poll_until(enum spw_err (*ask)(struct spw_pool *pool), struct spw_pool *pool,
                               uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    for (;;) {
        enum spw_err err = ask(pool);

        if (err != SPW_E_AGAIN || !spw_backoff_pause(&backoff)) {
            return err;
        }
    }
}

static enum spw_err retry_remap(struct spw_pool *pool)
{
    return spw_pool_move_remap_lost(pool);
}

/* While submissions are held back: waits, copies and switches. */
static enum spw_err copy_and_switch(const struct spw_exporter *exporter)
{
    struct spw_pool *pool = exporter->pool;
    uint64_t patience = exporter->wait_ns + (uint64_t)STEP_KIB * COPY_NS_PER_KIB;
    enum spw_err err = poll_until(spw_pool_export_drain, pool, exporter->wait_ns);

    if (err == SPW_OK) {
        err = spw_pool_export_copy(pool);
    }
    if (err == SPW_OK) {
        err = poll_until(spw_pool_export_poll, pool, patience);
    }
    if (err == SPW_OK) {
        err = spw_pool_export_commit(pool);
        if (err != SPW_OK) {
            (void)poll_until(retry_remap, pool, SPW_TUNE_LONG_WAIT_NS);
        }
    }
    return err;
}

/* Makes and ends the step that spw_pool_export_begin began. */
static enum spw_err make_step(const struct spw_exporter *exporter)
{
    struct spw_pool *pool = exporter->pool;
    uint64_t begin = spw_clock_measured_ns();
    enum spw_err err = poll_until(spw_pool_export_drain, pool, SPW_TUNE_LONG_WAIT_NS);

    if (err == SPW_OK) {
        err = SPW_E_AGAIN;
        begin = spw_clock_measured_ns();
        if (spw_migrate_barrier_quiesce(exporter->wait_ns)) {
            err = copy_and_switch(exporter);
            spw_migrate_barrier_resume();
        }
        spw_counter_add(&exporter->counters->closed_ns, spw_clock_measured_ns() - begin);
    }
    if (err == SPW_E_AGAIN) {
        (void)poll_until(spw_pool_export_poll, pool, SPW_TUNE_LONG_WAIT_NS);
    }
    spw_pool_export_end(pool);
    return err;
}

/* Makes one step if needed. */
static enum spw_err advance(const struct spw_exporter *exporter, uint64_t address, uint64_t id,
                            bool *ret_done)
{
    enum spw_err err;

    spw_migrate_hold_moves(exporter->tier);
    err = spw_pool_export_begin(exporter->pool, address, id, ret_done);
    if (err == SPW_OK && !*ret_done) {
        err = make_step(exporter);
    }
    spw_migrate_release_moves(exporter->tier);
    return err;
}

static bool is_short(enum spw_err err)
{
    return err == SPW_E_NO_MEMORY || err == SPW_E_LIMIT;
}

/* Evicts other blocks to make room. Makes attempts until `end`, since a migration may be abandoned.
 * False when all failed. */
static bool make_room(const struct spw_exporter *exporter, uint64_t end)
{
    struct spw_backoff backoff = {.limit_ns = UINT64_MAX};

    while (exporter->tier != NULL && spw_clock_ns() < end) {
        if (spw_migrate_evict(exporter->tier)) {
            return true;
        }
        (void)spw_backoff_pause(&backoff);
    }
    return false;
}

enum spw_err spw_migrate_export(const struct spw_exporter *exporter, uint64_t address, uint64_t id)
{
    uint64_t end = spw_clock_ns() + SPW_TUNE_LONG_WAIT_NS;
    enum spw_err err;
    bool done;

    for (;;) {
        err = advance(exporter, address, id, &done);
        if (is_short(err) && make_room(exporter, end)) {
            continue;
        }
        if ((err != SPW_OK && err != SPW_E_AGAIN) || done || spw_clock_ns() > end) {
            return err == SPW_OK && !done ? SPW_E_AGAIN : err;
        }
    }
}
