/* The virtual clock, in nanoseconds since the start of the process.
 *
 * It advances with every call and where the host waits; the scheduler (exec/schedule.h) decides by
 * how much. With SPILLWAY_SIM_TIME it follows a cost model (exec/timing.h), else a call takes one
 * step and work takes no time.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SIM_STEP_NS = 1000 }; /* duration of a call when time is not simulated */

/* True with SPILLWAY_SIM_TIME. Needs no lock. */
bool sim_clock_is_on(void);

/* The present time. */
uint64_t sim_clock_now(void);

/* Moves the clock to `ns`. Only the scheduler calls this, and never backwards. */
void sim_clock_set(uint64_t ns);
