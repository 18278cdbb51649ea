/* Hosts that wait by asking: with SPILLWAY_SIM_TIME, a thread that does nothing but ask the same
 * event or stream again and again lets the clock jump to the answer, which ends its loop at the
 * right time. A question or two in passing is none.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/core/functions.h"

/* A call of the calling thread begins: one that is no question ends its wait. */
void sim_poll_loop_note(enum sim_fn fn);

/* The calling thread asks an event or a stream, and the answer is: not yet. Whether it waits. */
bool sim_poll_loop_waits(const void *object);
