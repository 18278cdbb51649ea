/* Tracks how much of the submitted work the device has completed.
 *
 * Now and then a mark is set: a fence behind the work submitted so far, with a snapshot of the
 * access log. When the fence completes, all work recorded up to the snapshot is done, so granules
 * that were not accessed later can be migrated without waiting.
 *
 * No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "migrate/learn/access_log.h"
#include "pool/pool.h"

/* The most marks that are not complete. */
enum { SPW_MARKS = 256 };

struct spw_mark {
    struct spw_access_log_snapshot snapshot;
    void *fence;
};

struct spw_progress {
    struct spw_pool *pool;
    struct spw_mark ring[SPW_MARKS];
    size_t first, count;                      /* ring of marks not completed, oldest first */
    struct spw_access_log_snapshot completed; /* that of the newest completed mark */
    bool any;                                 /* `completed` is valid */
};

/* Sets a mark after all work of the device or, if `stream` is not NULL, of that stream. The caller
 * has just taken the snapshot, on this thread. Sets no mark when the ring is full, or during a
 * capture. */
void spw_migrate_progress_set(struct spw_progress *marks, const struct spw_stream *stream,
                              const struct spw_access_log_snapshot *snapshot);

/* The newest snapshot whose work is complete; NULL: none. Valid until the next call. */
const struct spw_access_log_snapshot *spw_migrate_progress_completed(struct spw_progress *marks);

/* True when all marks that were set before event number `event` are complete. */
bool spw_migrate_progress_has_passed(struct spw_progress *marks, uint64_t event);
