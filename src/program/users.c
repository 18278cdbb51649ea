#include "program/users.h"

#include "device/device.h"
#include "device/lease.h"
#include "device/lookup.h"
#include "program/stream.h"

static bool is_needed(void)
{
    return atomic_load_explicit(&spw_devices.uses_several, memory_order_acquire);
}

/* `info` NULL: the stream is unknown, and may be one of any context. */
static void note(struct spw_device *owner, struct spw_pool *pool,
                 const struct spw_stream_info *info)
{
    if (info == NULL) {
        spw_device_add_users(owner, pool);
    } else if (info->ordinal != owner->ordinal) {
        spw_device_add_user(owner, pool, info->stream.context);
    }
}

void spw_program_users_note(const uint64_t *addresses, size_t count, CUstream stream,
                            bool per_thread)
{
    const struct spw_stream_info *info = NULL;
    bool asked = false;

    if (!is_needed()) {
        return;
    }
    spw_device_lease_enter();
    for (size_t i = 0; i < count; i++) {
        struct spw_pool *pool;
        struct spw_device *owner = addresses[i] != 0 ? spw_device_owner(addresses[i], &pool) : NULL;

        if (owner == NULL) {
            continue;
        }
        if (!asked) {
            info = spw_program_stream_get(stream, per_thread);
            asked = true;
        }
        note(owner, pool, info);
    }
    spw_device_lease_leave();
}

void spw_program_users_note_anywhere(CUstream stream, bool per_thread)
{
    const struct spw_stream_info *info;

    if (!is_needed()) {
        return;
    }
    spw_device_lease_enter();
    info = spw_program_stream_get(stream, per_thread);
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL) {
            note(spw_device_at(i), pool, info);
        }
    }
    spw_device_lease_leave();
}
