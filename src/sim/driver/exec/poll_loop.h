/* Polling loops: with SPILLWAY_SIM_TIME, when a thread only queries one event or stream again and
 * again, the clock jumps to the time of its completion, so the loop ends at the right time. A few
 * queries in passing are no loop.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/core/functions.h"

/* A call of the calling thread begins: one that is no query ends its loop. */
void sim_poll_loop_note(enum sim_fn fn);

/* The calling thread has queried an event or stream that is not complete. True if it is in a
 * loop. */
bool sim_poll_loop_waits(const void *object);
