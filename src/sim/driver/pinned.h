/* Page-locked host memory.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include "sim/driver/block.h"

/* Frees memory of cuMemHostAlloc, or forgets registered memory. */
void sim_pinned_destroy(struct sim_block *block);
