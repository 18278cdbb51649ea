/* Prefetch: migrates blocks ahead of their predicted uses, in both directions at once.
 *
 * Now and then (by events of the access log) a plan is made: granules on the host that will be used
 * soon are swapped with granules on the device that will be used late. A swap begins when it is
 * large enough for its fixed costs, or when its first granule is needed soon. It is finished when
 * its pre-copy is done, or at once when a call needs its granules.
 *
 * Locking: the caller holds the lock of struct spw_migrate, except in
 * spw_migrate_prefetch_is_due. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migrate/learn/access_log.h"
#include "migrate/move/migration.h"
#include "migrate/move/step_meter.h"
#include "migrate/move/throttle.h"

struct spw_prefetch {
    struct spw_migrator *migrator; /* borrowed, like log and throttle */
    struct spw_access_log *log;
    struct spw_throttle *throttle;
    uint64_t patience_ns;     /* wait for an idle device before submissions are held back */
    uint64_t period;          /* predicted, in events; 0: none */
    uint64_t quiet_until;     /* no plan is made before this clock time */
    _Atomic uint32_t calls;   /* submissions since the last look at migrations in flight */
    _Atomic uint64_t plan_at; /* event number of the next plan */
    /* When the throttle last waited: the event number that the stream had passed, and the number of
     * migrations in flight. */
    uint64_t seen_completed;
    size_t seen_in_flight;
    struct spw_step_meter meter;
    struct spw_access_log_plan plan, hot_plan; /* scratch, larger than a stack allows */
};

/* The share of the device's limit that is moved or kept free at once. */
uint64_t spw_migrate_prefetch_batch_bytes(const struct spw_prefetch *prefetch);

/* True when the caller's next submission should advance prefetching. Any thread, no lock. */
bool spw_migrate_prefetch_is_due(const struct spw_prefetch *prefetch);

/* Counts a submission, and returns the earlier value of is_due. Any thread, no lock. */
bool spw_migrate_prefetch_count(struct spw_prefetch *prefetch);

/* Throttles the submitter to `stream` (NULL: unknown), then advances if a migration is in flight or
 * a plan is due. Waits for blocks at the addresses that are migrating to the device. */
void spw_migrate_prefetch_before_submit(struct spw_prefetch *prefetch, const uint64_t *addresses,
                                        size_t count, const struct spw_stream *stream);

/* Finishes a copied migration, and begins the next one if a plan has moves. With `needed`, finishes
 * migrations until no block at the addresses is migrating to the device. */
void spw_migrate_prefetch_advance(struct spw_prefetch *prefetch, bool needed,
                                  const uint64_t *addresses, size_t count);

/* Finishes the oldest migration, if any, and releases old memory. False when there was none to
 * release, so no room was gained. */
bool spw_migrate_prefetch_finish_one(struct spw_prefetch *prefetch);

/* Finishes all migrations in flight and releases their old memory. */
void spw_migrate_prefetch_finish_all(struct spw_prefetch *prefetch);
