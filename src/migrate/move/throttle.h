/* Throttle: keeps the program from submitting work too far ahead of the device.
 *
 * A program usually submits much faster than the device works. Before a switch of memory the device
 * must finish all submitted work (stop-and-copy). With SPILLWAY_OVERLAP=guarded a granule that
 * submitted work still uses cannot migrate. Both take longer if the program is further ahead. So
 * while a period is predicted, the submitting thread waits until the device is at most a given
 * number of events behind (the lead).
 *
 * The lead is measured by marks (progress.h) on the stream of the call. Marks of the whole device
 * would also wait for spillway's own copies.
 *
 * No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "migrate/learn/access_log.h"
#include "migrate/learn/progress.h"

struct spw_throttle {
    struct spw_progress device_marks; /* behind all work; set only with `guarded` */
    struct spw_progress stream_marks; /* behind the work of one stream each */
    uint64_t marked;                  /* event number of the last marks */
    uint32_t pause;                   /* marks left that do not hold the program back */
    uint64_t wait_ns;                 /* longest wait of one call */
    bool guarded;                     /* as in struct spw_migrator */
};

/* Initialises a zeroed throttle. The pool is borrowed. `wait_ns`: longest wait of one call. */
void spw_migrate_throttle_init(struct spw_throttle *throttle, struct spw_pool *pool,
                               uint64_t wait_ns, bool guarded);

/* The newest snapshot whose work the device has completed, if the log has complete records of all
 * later submissions: granules without a later access are unused. NULL if unknown, and always
 * without `guarded`. Valid until the next call. */
const struct spw_access_log_snapshot *spw_migrate_throttle_completed(struct spw_throttle *throttle,
                                                                     struct spw_access_log *log);

/* A moment, in events: a small share of the period. */
uint64_t spw_migrate_throttle_moment(uint64_t period);

/* The lead, in events, that the program may have; `migrating`: a migration is in flight. */
uint64_t spw_migrate_throttle_lead(const struct spw_throttle *throttle, uint64_t period,
                                   bool migrating);

/* Called again and again during a wait, with the caller's lock held. */
typedef void spw_migrate_throttle_meanwhile(void *cookie);

/* Called before a submission to `stream` (NULL: unknown). Sets marks, and waits while the program
 * leads by more than `lead` events; calls `meanwhile`, if not NULL, during the wait, whose limit
 * includes the time of these calls. With `guarded` it waits only if `device_busy`: the last switch
 * was made while the device was busy. After a wait that timed out it does not wait for a while,
 * because the device may wait for the next submission. */
void spw_migrate_throttle_submitter(struct spw_throttle *throttle, struct spw_access_log *log,
                                    const struct spw_stream *stream, uint64_t period, uint64_t lead,
                                    bool device_busy, spw_migrate_throttle_meanwhile *meanwhile,
                                    void *cookie);
