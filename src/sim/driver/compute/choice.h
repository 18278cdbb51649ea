/* Sizes that the user chooses where the simulator does not know them: SPILLWAY_SIM_UNKNOWN says how
 * many elements a kernel counts or selects whose input is not known (memory/known.h).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number of `count` elements that are selected, at least `least`; the run record counts it as
 * chosen. False if the option leaves it to what the memory happens to hold. */
bool sim_choice_selected(int device, uint64_t count, uint64_t least, uint64_t *ret_selected);
