/* Time from the processor's clock, which is compared with the system's again and again.
 *
 * The two come apart when the machine is suspended: the system's clock (CLOCK_MONOTONIC) stands
 * still then, and the processor's goes on, or begins anew. The system's counts. Pure; the caller
 * holds the lock. Times are in units of the caller's. */
#pragma once

#include "common/likely.h"

#include <stdbool.h>
#include <stdint.h>

/* Products of ticks and rates. */
__extension__ typedef unsigned __int128 spw_record_wide;

struct spw_record_timeline {
    uint64_t rate; /* units in a tick, times 2 to the power of 32; 0: not known */
    uint64_t anchor_ticks, anchor_time; /* at the last comparison */
    uint64_t most_ticks;                /* after it: then the next one is due */
    uint64_t first_ticks, first_time;   /* since then the clocks have not come apart */
    uint64_t units_per_second;
};

/* Begins at these readings of both clocks. The rate is not known yet. */
void spw_record_timeline_begin(struct spw_record_timeline *timeline, uint64_t ticks, uint64_t time,
                               uint64_t units_per_second);

/* Compares the clocks. The longer they go together, the more exact is the rate. */
void spw_record_timeline_compare(struct spw_record_timeline *timeline, uint64_t ticks,
                                 uint64_t time);

/* Converts a reading of the processor's clock. False when the clocks are to be compared first: the
 * rate is not known, or the last comparison is a tenth of a second ago, so that a suspended machine
 * moves no event by more than that; or the clock is behind, as that of another processor may be. */
static inline bool spw_record_timeline_now(const struct spw_record_timeline *timeline,
                                           uint64_t ticks, uint64_t *ret_time)
{
    uint64_t passed = ticks - timeline->anchor_ticks;

    if (SPW_UNLIKELY(passed > timeline->most_ticks || timeline->rate == 0)) {
        return false;
    }
    *ret_time = timeline->anchor_time + (uint64_t)((spw_record_wide)passed * timeline->rate >> 32);
    return true;
}
