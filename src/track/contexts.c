#include "track/contexts.h"

#include "common/lock.h"
#include "track/state.h"

#include <stdlib.h>

bool spw_track_contexts_find(CUcontext context, struct spw_stream_info *ret_info)
{
    const struct spw_stream_info *known;

    spw_lock(&spw_locks.contexts);
    known = spw_map_get(&spw_process.contexts.entries, (uintptr_t)context);
    if (known != NULL) {
        *ret_info = *known;
    }
    spw_unlock(&spw_locks.contexts);
    return known != NULL;
}

bool spw_track_contexts_add(const struct spw_stream_info *info)
{
    uint64_t key = (uintptr_t)info->stream.context;
    struct spw_stream_info *copy = malloc(sizeof(*copy));
    bool there;

    if (copy == NULL) {
        return false;
    }
    *copy = *info;
    spw_lock(&spw_locks.contexts);
    there = spw_map_get(&spw_process.contexts.entries, key) != NULL;
    if (!there && spw_map_put(&spw_process.contexts.entries, key, copy)) {
        there = true;
        copy = NULL;
    }
    spw_unlock(&spw_locks.contexts);
    free(copy);
    return there;
}

bool spw_track_contexts_remove(CUcontext context, struct spw_stream_info *ret_info)
{
    struct spw_stream_info *info;

    spw_lock(&spw_locks.contexts);
    info = spw_map_take(&spw_process.contexts.entries, (uintptr_t)context);
    spw_unlock(&spw_locks.contexts);
    if (info == NULL) {
        return false;
    }
    *ret_info = *info;
    free(info);
    return true;
}

CUcontext spw_track_contexts_next(int ordinal, size_t *cursor)
{
    const struct spw_stream_info *info;
    CUcontext found = NULL;

    spw_lock(&spw_locks.contexts);
    while (found == NULL && (info = spw_map_next(&spw_process.contexts.entries, cursor)) != NULL) {
        found = info->ordinal == ordinal ? info->stream.context : NULL;
    }
    spw_unlock(&spw_locks.contexts);
    return found;
}

size_t spw_track_contexts_count(int ordinal)
{
    const struct spw_stream_info *info;
    size_t cursor = 0, count = 0;

    spw_lock(&spw_locks.contexts);
    while ((info = spw_map_next(&spw_process.contexts.entries, &cursor)) != NULL) {
        count += info->ordinal == ordinal;
    }
    spw_unlock(&spw_locks.contexts);
    return count;
}

void spw_track_contexts_reset(void)
{
    spw_lock(&spw_locks.contexts);
    spw_map_clear(&spw_process.contexts.entries);
    spw_unlock(&spw_locks.contexts);
}
