/* Tracks how much of the submitted work the device has completed.
 *
 * Now and then a mark is set: a fence behind the work submitted so far, with a snapshot of the
 * access log. When the fence completes, all work that was recorded up to the snapshot is done, so
 * granules that were not accessed since can be migrated without waiting.
 *
 * No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "migrate/access_log.h"
#include "pool/pool.h"

/* Capacity: marks that are not completed yet. */
enum { SPW_MARKS = 256 };

struct spw_mark {
    struct spw_access_log_snapshot snapshot;
    void *fence;
};

struct spw_progress {
    struct spw_pool *pool;
    struct spw_mark ring[SPW_MARKS];
    size_t first, count;                      /* marks not completed; oldest first */
    struct spw_access_log_snapshot completed; /* of the newest completed mark */
    bool any;                                 /* `completed` is valid */
};

/* Sets a mark behind all work of the device, or only of `stream` if not NULL. The caller took the
 * snapshot just before, on this thread. Sets none when there are too many, or during a capture. */
void spw_migrate_progress_set(struct spw_progress *marks, const struct spw_stream *stream,
                              const struct spw_access_log_snapshot *snapshot);

/* The newest snapshot whose work is completed; NULL: none. Valid until the next call. */
const struct spw_access_log_snapshot *spw_migrate_progress_completed(struct spw_progress *marks);

/* Waits, at most `most_ns`, until all marks set before event number `event` are completed. False
 * when they are not. */
bool spw_migrate_progress_await(struct spw_progress *marks, uint64_t event, uint64_t most_ns);
