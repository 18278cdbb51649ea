#include "record/timeline.h"

enum { COMPARED_PER_SECOND = 10, TOLERANCE_SHARE = 1000, RATED_PER_SECOND = 1000 };

void spw_record_timeline_begin(struct spw_record_timeline *timeline, uint64_t ticks, uint64_t time,
                               uint64_t units_per_second)
{
    *timeline = (struct spw_record_timeline){.anchor_ticks = ticks,
                                             .anchor_time = time,
                                             .first_ticks = ticks,
                                             .first_time = time,
                                             .units_per_second = units_per_second};
}

/* True if both clocks advanced equally since the last comparison. A difference of a thousandth of
 * that time plus a millisecond is tolerated, as the thread may lose its processor between the two
 * readings. */
static bool agree(const struct spw_record_timeline *timeline, uint64_t ticks, uint64_t time)
{
    uint64_t passed = ticks - timeline->anchor_ticks, waited = time - timeline->anchor_time;
    spw_record_wide expected = (spw_record_wide)passed * timeline->rate >> 32;
    spw_record_wide apart = expected > waited ? expected - waited : waited - expected;

    return timeline->rate == 0 ||
           apart <= waited / TOLERANCE_SHARE + timeline->units_per_second / TOLERANCE_SHARE;
}

void spw_record_timeline_compare(struct spw_record_timeline *timeline, uint64_t ticks,
                                 uint64_t time)
{
    if (!agree(timeline, ticks, time)) {
        timeline->first_ticks = ticks;
        timeline->first_time = time;
    }
    /* Over a shorter time the rate would be less exact than the previous one. */
    if (ticks > timeline->first_ticks &&
        time - timeline->first_time >= timeline->units_per_second / RATED_PER_SECOND) {
        timeline->rate = (uint64_t)(((spw_record_wide)(time - timeline->first_time) << 32) /
                                    (ticks - timeline->first_ticks));
    }
    timeline->anchor_ticks = ticks;
    timeline->anchor_time = time;
    if (timeline->rate != 0) {
        timeline->most_ticks =
            (uint64_t)(((spw_record_wide)(timeline->units_per_second / COMPARED_PER_SECOND) << 32) /
                       timeline->rate);
    }
}
