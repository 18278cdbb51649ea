/* Time from the processor's clock, which is repeatedly compared with the system's clock.
 *
 * The clocks differ after the machine was suspended: the system's clock (CLOCK_MONOTONIC) stood
 * still, and the processor's went on or began anew. The system's clock is the one that counts.
 * Pure; the caller holds the lock. The caller chooses the unit of time. */
#pragma once

#include "common/likely.h"

#include <stdbool.h>
#include <stdint.h>

/* Products of ticks and rates. */
__extension__ typedef unsigned __int128 spw_record_wide;

struct spw_record_timeline {
    uint64_t rate; /* units in a tick, times 2 to the power of 32; 0: not known */
    uint64_t anchor_ticks, anchor_time; /* at the last comparison */
    uint64_t most_ticks;                /* from a comparison to the next one */
    uint64_t first_ticks, first_time;   /* the clocks agree from this time on */
    uint64_t units_per_second;
};

/* Begins at these readings of both clocks. The rate is not known yet. */
void spw_record_timeline_begin(struct spw_record_timeline *timeline, uint64_t ticks, uint64_t time,
                               uint64_t units_per_second);

/* Compares the clocks. The longer they agree, the more exact is the rate. */
void spw_record_timeline_compare(struct spw_record_timeline *timeline, uint64_t ticks,
                                 uint64_t time);

/* Converts a reading of the processor's clock. False when the clocks must be compared first. This
 * is so if the rate is not known, or if the reading is before the last comparison (another
 * processor's clock may be behind) or more than a tenth of a second after it. So a suspension moves
 * no event by more than that. */
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
