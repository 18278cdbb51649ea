#include "track/users.h"

#include "track/device.h"
#include "track/lease.h"
#include "track/lookup.h"
#include "track/stream.h"

static bool is_needed(void)
{
    return atomic_load_explicit(&spw_process.uses_several, memory_order_acquire);
}

/* `info` NULL: the stream is unknown, and may be one of any context. */
static void note(struct spw_device *owner, struct spw_pool *pool,
                 const struct spw_stream_info *info)
{
    if (info == NULL) {
        spw_track_device_add_users(owner, pool);
    } else if (info->ordinal != owner->ordinal) {
        spw_track_device_add_user(owner, pool, info->stream.context);
    }
}

void spw_track_users_note(const uint64_t *addresses, size_t count, CUstream stream, bool per_thread)
{
    const struct spw_stream_info *info = NULL;
    bool asked = false;

    if (!is_needed()) {
        return;
    }
    spw_track_lease_enter();
    for (size_t i = 0; i < count; i++) {
        struct spw_pool *pool;
        struct spw_device *owner =
            addresses[i] != 0 ? spw_track_device_owner(addresses[i], &pool) : NULL;

        if (owner == NULL) {
            continue;
        }
        if (!asked) {
            info = spw_track_stream_get(stream, per_thread);
            asked = true;
        }
        note(owner, pool, info);
    }
    spw_track_lease_leave();
}

void spw_track_users_note_anywhere(CUstream stream, bool per_thread)
{
    const struct spw_stream_info *info;

    if (!is_needed()) {
        return;
    }
    spw_track_lease_enter();
    info = spw_track_stream_get(stream, per_thread);
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            note(&spw_process.devices[i], pool, info);
        }
    }
    spw_track_lease_leave();
}
