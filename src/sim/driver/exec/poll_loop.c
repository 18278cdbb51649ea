#include "sim/driver/exec/poll_loop.h"

#include <stddef.h>

#include "sim/driver/core/clock.h"
#include "sim/driver/exec/timing.h"

/* More queries in a row than this are a loop. */
#define PATIENCE 3

static _Thread_local struct {
    const void *object; /* the last one queried */
    unsigned int times; /* queries of that object in a row */
} asked;

void sim_poll_loop_note(enum sim_fn fn)
{
    switch ((int)fn) {
    case SIM_FN_cuEventQuery:
    case SIM_FN_cuStreamQuery:
    case SIM_FN_cuStreamQuery_ptsz:
        return;
    default:
        if (!sim_timing_is_free(fn)) {
            asked.object = NULL;
        }
    }
}

bool sim_poll_loop_waits(const void *object)
{
    if (asked.object != object) {
        asked.object = object;
        asked.times = 0;
    }
    return ++asked.times > PATIENCE && sim_clock_is_on();
}
