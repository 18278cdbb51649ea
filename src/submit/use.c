#include "submit/use.h"

#include "device/lookup.h"
#include "device/tier.h"
#include "migrate/migrate.h"
#include "migrate/move/barrier.h"
#include "program/stream.h"
#include "record/record.h"

void spw_submit_use_expect(const uint64_t *addresses, size_t count, CUstream stream,
                           bool per_thread)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_migrate *tier = spw_device_tier(spw_device_at(i));
        const struct spw_stream_info *info = NULL;

        if (tier != NULL && spw_migrate_wants_stream(tier) && spw_device_may_move()) {
            info = spw_program_stream_get(stream, per_thread);
        }
        if (tier != NULL) {
            spw_migrate_expect(tier, addresses, count,
                               info != NULL && info->ordinal == i ? &info->stream : NULL);
        }
    }
}

/* Writes the use of each device's memory into the recording, in several entries if needed. */
static void record(const struct spw_use *use)
{
    struct spw_pool *pool;

    for (size_t i = 0; i < use->count || i == 0;) {
        const struct spw_device *owner =
            use->count > 0 ? spw_device_owner(use->addresses[i], &pool) : NULL;
        size_t first = i++;

        while (i < use->count && i - first < SPW_RECORD_USED &&
               spw_device_owner(use->addresses[i], &pool) == owner) {
            i++;
        }
        spw_record_use(owner != NULL ? owner->ordinal : 0, use->addresses + first,
                       owner != NULL ? i - first : 0, use->kernel && first == 0);
    }
}

void spw_submit_use_note(const struct spw_use *use)
{
    if (spw_migrate_barrier_depth != 1) {
        return; /* a call inside another call is a part of the outer one, which was noted */
    }
    if (spw_record_uses()) {
        record(use);
    }
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_migrate *tier = spw_device_tier(spw_device_at(i));

        if (tier == NULL) {
            continue;
        }
        if (use->known) {
            spw_migrate_use(tier, use->addresses, use->count, use->kernel);
        } else {
            spw_migrate_use_among(tier, use->addresses, use->count);
        }
    }
}
