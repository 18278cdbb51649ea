#include "serve/page_locked.h"

#include "pool/accounts.h"
#include "system/lock.h"

/* Caller holds the lock. */
static void note_peak(struct spw_device *device)
{
    struct spw_counters *counters = device->counters;

    if (spw_counter_get(&counters->pinned_bytes) > spw_counter_get(&counters->pinned_peak_bytes)) {
        spw_counter_peak(&counters->pinned_peak_bytes, &counters->pinned_bytes);
        if (device->pinned != NULL) {
            spw_pool_charges_peak(device->pinned);
        }
    }
}

void spw_serve_page_locked(struct spw_device *device, uint32_t site, int64_t change)
{
    spw_lock(&spw_locks.page_locked);
    spw_counter_shift(&device->counters->pinned_bytes, change);
    if (device->pinned != NULL) {
        spw_pool_charges_move(device->pinned, site, change);
    }
    if (change > 0) {
        spw_counter_shift(&device->counters->pinned_allocs, 1);
        note_peak(device);
    }
    spw_unlock(&spw_locks.page_locked);
}
