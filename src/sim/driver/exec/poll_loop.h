/* Polling loops: a thread only queries one event or stream repeatedly. With SPILLWAY_SIM_TIME the
 * clock then jumps to its completion, so the loop ends at the right time. A few queries in a row
 * are no loop.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/core/functions.h"

/* To be called when a call begins: a call that is no query ends the thread's loop. */
void sim_poll_loop_note(enum sim_fn fn);

/* The calling thread has queried an event or stream that is not complete. True if it is in a
 * loop. */
bool sim_poll_loop_waits(const void *object);
