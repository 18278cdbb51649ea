/* Sizes that the simulator does not know and that the user chooses. SPILLWAY_SIM_UNKNOWN decides
 * how many elements a kernel counts or selects if its input is unknown (memory/known.h).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Chooses how many of `count` elements are selected: at least `least`, unless `count` is smaller.
 * The run record counts the choice. Returns false if the kernel must use the unknown content of the
 * memory instead. */
bool sim_choice_selected(int device, uint64_t count, uint64_t least, uint64_t *ret_selected);
