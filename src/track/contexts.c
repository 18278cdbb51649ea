#include "track/contexts.h"

#include "common/map.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    struct spw_map entries; /* struct spw_stream_info by context */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool spw_track_contexts_find(CUcontext context, struct spw_stream_info *ret_info)
{
    const struct spw_stream_info *known;

    pthread_mutex_lock(&table.lock);
    known = spw_map_get(&table.entries, (uintptr_t)context);
    if (known != NULL) {
        *ret_info = *known;
    }
    pthread_mutex_unlock(&table.lock);
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
    pthread_mutex_lock(&table.lock);
    there = spw_map_get(&table.entries, key) != NULL;
    if (!there && spw_map_put(&table.entries, key, copy)) {
        there = true;
        copy = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    free(copy);
    return there;
}

bool spw_track_contexts_remove(CUcontext context, struct spw_stream_info *ret_info)
{
    struct spw_stream_info *info;

    pthread_mutex_lock(&table.lock);
    info = spw_map_take(&table.entries, (uintptr_t)context);
    pthread_mutex_unlock(&table.lock);
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

    pthread_mutex_lock(&table.lock);
    while (found == NULL && (info = spw_map_next(&table.entries, cursor)) != NULL) {
        found = info->ordinal == ordinal ? info->stream.context : NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

void spw_track_contexts_lock(void)
{
    pthread_mutex_lock(&table.lock);
}

void spw_track_contexts_unlock(void)
{
    pthread_mutex_unlock(&table.lock);
}

void spw_track_contexts_reset(void)
{
    pthread_mutex_lock(&table.lock);
    spw_map_clear(&table.entries);
    pthread_mutex_unlock(&table.lock);
}
