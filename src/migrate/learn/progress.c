#include "migrate/learn/progress.h"

void spw_migrate_progress_set(struct spw_progress *marks, const struct spw_stream *stream,
                              const struct spw_access_log_snapshot *snapshot)
{
    struct spw_mark mark = {.snapshot = *snapshot};

    if (marks->count < SPW_MARKS &&
        spw_pool_fence_record(marks->pool, stream, &mark.fence) == SPW_OK) {
        marks->ring[(marks->first + marks->count++) % SPW_MARKS] = mark;
    }
}

const struct spw_access_log_snapshot *spw_migrate_progress_completed(struct spw_progress *marks)
{
    while (marks->count > 0) {
        const struct spw_mark *oldest = &marks->ring[marks->first];

        if (spw_pool_fence_query(marks->pool, oldest->fence) != SPW_OK) {
            break;
        }
        spw_pool_fence_drop(marks->pool, oldest->fence);
        marks->completed = oldest->snapshot;
        marks->any = true;
        marks->first = (marks->first + 1) % SPW_MARKS;
        marks->count--;
    }
    return marks->any ? &marks->completed : NULL;
}

bool spw_migrate_progress_has_passed(struct spw_progress *marks, uint64_t event)
{
    (void)spw_migrate_progress_completed(marks);
    return marks->count == 0 || marks->ring[marks->first].snapshot.events >= event;
}
