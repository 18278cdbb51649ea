#include "sim/driver/exec/poll_loop.h"

#include <stddef.h>

#include "sim/driver/core/clock.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/timing.h"

enum {
    OBJECTS = 4,  /* the most objects that a loop queries */
    PATIENCE = 3, /* more queries in a row for each object are a loop */
};

static _Thread_local struct {
    const void *objects[OBJECTS]; /* those queried in a row */
    unsigned int count;
    unsigned int times; /* queries in a row since the last new object */
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
            asked.count = 0;
        }
    }
}

static void note_object(const void *object)
{
    for (unsigned int i = 0; i < asked.count; i++) {
        if (asked.objects[i] == object) {
            asked.times++;
            return;
        }
    }
    asked.count %= OBJECTS;
    asked.objects[asked.count++] = object;
    asked.times = 1;
}

bool sim_poll_loop_waits(const void *object)
{
    note_object(object);
    if (!sim_clock_is_on() || asked.times <= PATIENCE * asked.count) {
        return false;
    }
    if (asked.count > 1) {
        sim_schedule_expect_next();
    }
    return asked.count == 1;
}
