/* Throttle: keeps the program from submitting work too far ahead of the device.
 *
 * A program usually submits much faster than the device works. Before a switch of memory the device
 * must finish what is submitted (stop-and-copy), and with SPILLWAY_OVERLAP=trust a granule that
 * submitted work still uses cannot migrate. The further ahead the program is, the longer that
 * takes. So while a period is predicted, the submitting thread waits until the device is at most a
 * given number of events behind (the lead).
 *
 * The lead is measured by marks (progress.h) on the stream that the call submits to. Marks of the
 * whole device would also wait for spillway's own copies.
 *
 * No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "migrate/access_log.h"
#include "migrate/progress.h"

struct spw_throttle {
    struct spw_progress device_marks; /* behind all work; set only with `trust` */
    struct spw_progress stream_marks; /* behind the work of one stream each */
    uint64_t marked;                  /* event number of the last marks */
    uint32_t pause;                   /* marks left at which the program is not held back */
    uint64_t wait_ns;                 /* longest wait of one call */
    bool trust;                       /* as in struct spw_migrator */
};

/* Initialises a zeroed throttle. The pool is borrowed. `wait_ns`: longest wait of one call. */
void spw_migrate_throttle_init(struct spw_throttle *throttle, struct spw_pool *pool,
                               uint64_t wait_ns, bool trust);

/* The newest snapshot up to which the device has completed all work, when everything submitted
 * since is in the log completely: granules not accessed since are unused. NULL when unknown, and
 * always without `trust`. Valid until the next call. */
const struct spw_access_log_snapshot *spw_migrate_throttle_completed(struct spw_throttle *throttle,
                                                                     struct spw_access_log *log);

/* Events that the program may lead the device by; `migrating`: a migration is in flight. */
uint64_t spw_migrate_throttle_lead(const struct spw_throttle *throttle, uint64_t period,
                                   bool migrating);

/* Called before a submission to `stream` (NULL: unknown). Sets marks, and waits while the program
 * leads by more than `lead` events. With `trust` it waits only if `device_busy`: the last switch
 * was made beside running work. After a wait that timed out, the program is left alone for a while,
 * because the device may be waiting for the next submission. */
void spw_migrate_throttle_submitter(struct spw_throttle *throttle, struct spw_access_log *log,
                                    const struct spw_stream *stream, uint64_t period, uint64_t lead,
                                    bool device_busy);
