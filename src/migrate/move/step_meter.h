/* Measures the predicted steps of a program whose memory moves: how long they take, how much memory
 * moves in them, and how long moves hold the program's work back. The results are counters.
 *
 * No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdint.h>

#include "common/counters.h"

/* The clock and the counters at the beginning of the present step. All are 0 before the first
 * step. */
struct spw_step_meter {
    uint64_t events, ns, out_bytes, in_bytes, held_ns;
};

/* Called often, with the number of events so far and the predicted length of a step in events (0:
 * none is predicted). Once a step or more has passed, sets the counters named step_*, scaled to one
 * step. */
void spw_migrate_step_meter_look(struct spw_step_meter *meter, struct spw_counters *counters,
                                 uint64_t events, uint64_t period);
