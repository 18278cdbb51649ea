/* Prefetch: migrates ahead of use what the predictor expects, both ways at once.
 *
 * Every now and then (by events of the access log) a plan is made: granules on the host that will
 * be used soon are swapped with granules on the device that will be used late. A swap is begun when
 * it is large enough to be worth its fixed costs, or when its first granule is needed soon. Swaps
 * in flight are finished when their pre-copy is done, or at once when a call needs what they bring.
 *
 * Locking: the caller holds the lock of struct spw_migrate, except in
 * spw_migrate_prefetch_is_due. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migrate/access_log.h"
#include "migrate/migration.h"
#include "migrate/throttle.h"

struct spw_prefetch {
    struct spw_migrator *migrator; /* not owned, nor are log and throttle */
    struct spw_access_log *log;
    struct spw_throttle *throttle;
    uint64_t patience_ns;     /* wait for an idle device before submissions are held back */
    uint64_t period;          /* the predicted one, in events; 0: none */
    uint64_t quiet_until;     /* clock time before which no plan is made */
    _Atomic uint32_t calls;   /* submissions since the last look at migrations in flight */
    _Atomic uint64_t plan_at; /* event number at which the next plan is made */
    struct spw_access_log_plan plan, hot_plan; /* scratch, too large for a stack */
};

/* True when the caller's next submission should look after prefetching. Any thread, no lock. */
bool spw_migrate_prefetch_is_due(const struct spw_prefetch *prefetch);

/* Counts a submission and returns is_due as it was before. Any thread, no lock. */
bool spw_migrate_prefetch_count(struct spw_prefetch *prefetch);

/* Throttles the submitter to `stream` (NULL: unknown), then advances if there is something to do.
 * `needed`: one of the addresses is on its way to the device. */
void spw_migrate_prefetch_before_submit(struct spw_prefetch *prefetch, const uint64_t *addresses,
                                        size_t count, const struct spw_stream *stream, bool needed);

/* Finishes what is copied, and begins the next migration if a plan says so. With `needed`, finishes
 * migrations until none of the addresses is on its way any more. */
void spw_migrate_prefetch_advance(struct spw_prefetch *prefetch, bool needed,
                                  const uint64_t *addresses, size_t count);

/* Finishes the oldest migration, if any, and releases its old memory. False when that cannot have
 * given any room. */
bool spw_migrate_prefetch_finish_one(struct spw_prefetch *prefetch);

/* Finishes all migrations in flight and releases their old memory. */
void spw_migrate_prefetch_finish_all(struct spw_prefetch *prefetch);
