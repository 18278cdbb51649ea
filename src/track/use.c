#include "track/use.h"

#include "migrate/barrier.h"
#include "record/record.h"
#include "track/lookup.h"
#include "track/spill.h"
#include "track/stream.h"

void spw_track_use_expect(const uint64_t *addresses, size_t count, CUstream stream, bool per_thread)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        const struct spw_stream_info *info = spw_track_spill_follows(&spw_process.devices[i])
                                                 ? spw_track_stream_get(stream, per_thread)
                                                 : NULL;

        spw_track_spill_expect(&spw_process.devices[i], addresses, count,
                               info != NULL && info->ordinal == i ? &info->stream : NULL);
    }
}

/* Writes the use of each device's memory into the recording, in several entries if needed. */
static void record(const struct spw_use *use)
{
    struct spw_pool *pool;

    for (size_t i = 0; i < use->count || i == 0;) {
        const struct spw_device *owner =
            use->count > 0 ? spw_track_device_owner(use->addresses[i], &pool) : NULL;
        size_t first = i++;

        while (i < use->count && i - first < SPW_RECORD_USED &&
               spw_track_device_owner(use->addresses[i], &pool) == owner) {
            i++;
        }
        spw_record_use(owner != NULL ? owner->ordinal : 0, use->addresses + first,
                       owner != NULL ? i - first : 0, use->kernel && first == 0);
    }
}

void spw_track_use_note(const struct spw_use *use)
{
    if (spw_migrate_barrier_depth != 1) {
        return; /* a call inside another call is a part of the outer one, which was noted */
    }
    if (spw_record_uses()) {
        record(use);
    }
    for (int i = 0; i < spw_process.device_count; i++) {
        if (SPW_UNLIKELY(use->first)) {
            spw_track_spill_meet_kernel(&spw_process.devices[i]);
        }
        if (use->known) {
            spw_track_spill_use(&spw_process.devices[i], use->addresses, use->count, use->kernel);
        } else if (use->count > 0) {
            spw_track_spill_use_among(&spw_process.devices[i], use->addresses, use->count);
        }
    }
}
