/* Polling loops: a thread only queries events and streams repeatedly. With SPILLWAY_SIM_TIME the
 * clock then jumps: to the completion of the event or stream if the thread queries only one, and
 * otherwise to the next completion of any work. So the loop ends at the right time. A few queries
 * in a row do not count as a loop. Queries of more than four objects in turn do not count either.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/core/functions.h"

/* Must be called when an API call begins. Ends the thread's loop, unless the call queries an event
 * or stream, or costs no time (sim_timing_is_free()). */
void sim_poll_loop_note(enum sim_fn fn);

/* Must be called when the calling thread has queried an event or stream that is not complete.
 * Returns true if time is simulated and the thread waits for this object alone; the caller then
 * moves the clock. If the thread waits for several objects, moves the clock itself. */
bool sim_poll_loop_waits(const void *object);
