#include "device/contexts.h"

#include "device/state.h"
#include "system/lock.h"

#include <stdlib.h>

/* An entry of the table. */
struct known {
    struct spw_stream_info info;
    unsigned attachments; /* attachments beyond the first */
};

bool spw_device_contexts_find(CUcontext context, struct spw_stream_info *ret_info)
{
    const struct known *known;

    spw_lock(&spw_locks.contexts);
    known = spw_map_get(&spw_devices.contexts, (uintptr_t)context);
    if (known != NULL) {
        *ret_info = known->info;
    }
    spw_unlock(&spw_locks.contexts);
    return known != NULL;
}

bool spw_device_contexts_add(const struct spw_stream_info *info)
{
    uint64_t key = (uintptr_t)info->stream.context;
    struct known *copy = malloc(sizeof(*copy));
    bool there;

    if (copy == NULL) {
        return false;
    }
    *copy = (struct known){.info = *info};
    spw_lock(&spw_locks.contexts);
    there = spw_map_get(&spw_devices.contexts, key) != NULL;
    if (!there && spw_map_put(&spw_devices.contexts, key, copy)) {
        there = true;
        copy = NULL;
    }
    spw_unlock(&spw_locks.contexts);
    free(copy);
    return there;
}

bool spw_device_contexts_remove(CUcontext context, struct spw_stream_info *ret_info)
{
    struct known *known;

    spw_lock(&spw_locks.contexts);
    known = spw_map_take(&spw_devices.contexts, (uintptr_t)context);
    spw_unlock(&spw_locks.contexts);
    if (known == NULL) {
        return false;
    }
    *ret_info = known->info;
    free(known);
    return true;
}

void spw_device_contexts_attach(CUcontext context)
{
    struct known *known;

    spw_lock(&spw_locks.contexts);
    known = spw_map_get(&spw_devices.contexts, (uintptr_t)context);
    if (known != NULL) {
        known->attachments++;
    }
    spw_unlock(&spw_locks.contexts);
}

bool spw_device_contexts_detach(CUcontext context)
{
    struct known *known;
    bool last;

    spw_lock(&spw_locks.contexts);
    known = spw_map_get(&spw_devices.contexts, (uintptr_t)context);
    last = known == NULL || known->attachments == 0;
    if (!last) {
        known->attachments--;
    }
    spw_unlock(&spw_locks.contexts);
    return last;
}

CUcontext spw_device_contexts_next(int ordinal, size_t *cursor)
{
    const struct known *known;
    CUcontext found = NULL;

    spw_lock(&spw_locks.contexts);
    while (found == NULL && (known = spw_map_next(&spw_devices.contexts, cursor)) != NULL) {
        found = known->info.ordinal == ordinal ? known->info.stream.context : NULL;
    }
    spw_unlock(&spw_locks.contexts);
    return found;
}

size_t spw_device_contexts_count(int ordinal)
{
    const struct known *known;
    size_t cursor = 0, count = 0;

    spw_lock(&spw_locks.contexts);
    while ((known = spw_map_next(&spw_devices.contexts, &cursor)) != NULL) {
        count += known->info.ordinal == ordinal;
    }
    spw_unlock(&spw_locks.contexts);
    return count;
}

void spw_device_contexts_reset(void)
{
    spw_lock(&spw_locks.contexts);
    spw_map_clear(&spw_devices.contexts);
    spw_unlock(&spw_locks.contexts);
}
