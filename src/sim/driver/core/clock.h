/* The virtual clock, in nanoseconds since the start of the process.
 *
 * The scheduler (exec/schedule.h) advances it with every call and when the host waits. With
 * SPILLWAY_SIM_TIME it follows a cost model (exec/timing.h). Without that option, a call takes one
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

/* Moves the clock forwards to `ns`. Only the scheduler calls this. */
void sim_clock_set(uint64_t ns);
