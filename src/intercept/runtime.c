#include "intercept/runtime.h"

#include "device/state.h"
#include "program/stream.h"

#include <stddef.h>

void spw_intercept_runtime_count_missed(void)
{
    const struct spw_stream_info *here = spw_process_serves() ? spw_program_stream_current() : NULL;

    if (here != NULL) {
        spw_counter_add(&spw_device_at(here->ordinal)->counters->runtime_missed, 1);
    }
}
