/* Time from the processor's clock, which is repeatedly compared with the system's clock.
 *
 * The two clocks disagree after the machine was suspended. The system's clock (CLOCK_MONOTONIC)
 * stops during a suspension, while the processor's clock continues or restarts. In this case the
 * system's clock is right. Pure; the caller holds the lock, and chooses the unit of time. */
#pragma once

#include "common/likely.h"

#include <stdbool.h>
#include <stdint.h>

/* For products of ticks and rates. */
__extension__ typedef unsigned __int128 spw_record_wide;

struct spw_record_timeline {
    uint64_t rate; /* units in a tick, times 2 to the power of 32; 0: unknown */
    uint64_t anchor_ticks, anchor_time; /* both clocks at the last comparison */
    uint64_t most_ticks;                /* the most ticks between two comparisons */
    uint64_t first_ticks, first_time;   /* both clocks when they began to agree */
    uint64_t units_per_second;
};

/* Begins with these readings of both clocks. The rate is still unknown. */
void spw_record_timeline_begin(struct spw_record_timeline *timeline, uint64_t ticks, uint64_t time,
                               uint64_t units_per_second);

/* Compares the clocks. The longer they agree, the more exact the rate becomes. */
void spw_record_timeline_compare(struct spw_record_timeline *timeline, uint64_t ticks,
                                 uint64_t time);

/* Converts a reading of the processor's clock. Returns false if the clocks must be compared first.
 * This is the case if the rate is unknown, if the reading is before the last comparison (the clock
 * of another processor may be behind), or if it is more than a tenth of a second after the last
 * comparison. A suspension can therefore shift an event by a tenth of a second at most. */
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
