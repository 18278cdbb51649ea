#include "device/moves.h"

#include "record/record.h"

void spw_device_record_move(int ordinal, const struct spw_migrate_switched *switched)
{
    const struct spw_move_place *places = switched->places;
    uint64_t granule = switched->granule_bytes, bytes[2] = {0};
    size_t count = switched->count;

    if (!spw_record_active()) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bytes[places[i].to == SPW_TIER_HOST] += granule;
    }
    spw_record_move(ordinal, bytes[true], bytes[false], switched->closed_ns, switched->predicted);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;

        while (end < count && places[end].to == places[i].to &&
               places[end].granule == places[end - 1].granule + granule) {
            end++;
        }
        spw_record_range(ordinal, places[i].granule, (end - i) * granule,
                         places[i].to == SPW_TIER_HOST);
        i = end;
    }
}
