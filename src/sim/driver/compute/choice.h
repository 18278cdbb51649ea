/* Sizes that the simulator does not know and the user chooses. SPILLWAY_SIM_UNKNOWN is the number
 * of elements that a kernel counts or selects if its input is unknown (memory/known.h).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number of elements to select of `count`, at least `least`; the run record counts the choice.
 * False if the option is to use the unknown content of the memory. */
bool sim_choice_selected(int device, uint64_t count, uint64_t least, uint64_t *ret_selected);
