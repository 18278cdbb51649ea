/* How far the device has come with what was submitted.
 *
 * Now and then a mark is set behind everything submitted so far, with the moment it stands for.
 * When the device has passed it, all that was noted by that moment is done: granules that were not
 * touched since are at rest, whatever else the device is doing, and whoever moves them need not
 * wait for anything.
 *
 * Locking: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pool/pool.h"
#include "migrate/access_log.h"

/* That are not passed yet, at most. */
enum { SPW_MARKS = 256 };

struct spw_mark {
    struct spw_access_log_moment moment;
    void *fence;
};

struct spw_progress {
    struct spw_pool *pool;
    struct spw_mark ring[SPW_MARKS];
    size_t first, count;                 /* of those that are not passed, oldest first */
    struct spw_access_log_moment passed; /* of the newest that is */
    bool any;                            /* there is one */
};

/* Sets a mark for a moment whose submissions were counted just before, by the same thread: behind
 * everything, or only behind what was submitted to a stream, which says less. Does nothing when
 * there are too many, or when none can be set now. */
void spw_migrate_progress_set(struct spw_progress *marks, const struct spw_stream *stream,
                              const struct spw_access_log_moment *moment);

/* The newest moment that the device has passed; NULL: none. */
const struct spw_access_log_moment *spw_migrate_progress_passed(struct spw_progress *marks);

/* Waits until the device has passed every mark from before an event, at most `most_ns`. False when
 * it has not. */
bool spw_migrate_progress_await(struct spw_progress *marks, uint64_t event, uint64_t most_ns);
