#include "sim/driver/compute/choice.h"

#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"

bool sim_choice_selected(int device, uint64_t count, uint64_t least, uint64_t *ret_selected)
{
    uint64_t selected;

    switch (sim_options()->unknown) {
    case SPW_UNKNOWN_NONE:
        selected = 0;
        break;
    case SPW_UNKNOWN_HALF:
        selected = count - count / 2;
        break;
    case SPW_UNKNOWN_ALL:
        selected = count;
        break;
    default:
        return false;
    }
    *ret_selected = selected < least && least <= count ? least : selected;
    sim_run_record_chosen(device);
    return true;
}
