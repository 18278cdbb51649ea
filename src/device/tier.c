#include "device/tier.h"

#include "process/unseen.h"

/* Gives up the moves in progress, on every device. */
static void give_up(void)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_migrate *tier = spw_device_tier(spw_device_at(i));

        if (tier != NULL) {
            spw_migrate_give_up(tier);
        }
    }
}

bool spw_device_may_move(void)
{
    if (atomic_load(&spw_process_driver()->captures_open) > 0) {
        return false;
    }
    if (SPW_LIKELY(!spw_process_unseen())) {
        return true;
    }
    if (!atomic_flag_test_and_set(&spw_devices.gave_up_moves)) {
        give_up();
    }
    return false;
}
