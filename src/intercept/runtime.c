#include "intercept/runtime.h"

#include "track/stream.h"

#include <stddef.h>

void spw_intercept_runtime_count_missed(void)
{
    const struct spw_stream_info *here = spw_track_serves() ? spw_track_stream_current() : NULL;

    if (here != NULL) {
        spw_counter_add(&spw_process.devices[here->ordinal].counters->runtime_missed, 1);
    }
}
