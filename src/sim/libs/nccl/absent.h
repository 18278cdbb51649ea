/* A job of which one rank runs and the others are absent (SPILLWAY_SIM_WORLD).
 *
 * Communicators have no board then: no rank waits for another. What other ranks would send is this
 * rank's own data: its own piece of a collective, and of a message the last one that was sent to
 * the same rank, if it is as long. Their content therefore says nothing; shapes and memory are
 * right.
 *
 * Locking: thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/libs/common/shim.h"

/* The most bytes that are copied for one operation in the place of absent ranks. Larger data is not
 * moved. */
#define SIM_NCCL_ABSENT_BYTES ((size_t)16 << 20)

/* True in such a job. */
bool sim_nccl_others_are_absent(void);

/* Sets the number of ranks of each communicator that the calling thread splits off next. NCCL is
 * not told it: each rank passes a color, and learns from the others how many chose the same. Called
 * by the module that prepares Python for such a job (src/sim/single_rank), which knows the group.
 * Exported. */
SIM_SHIM_EXPORT void spillway_sim_nccl_split(int ranks);

/* That number; 0: not set. */
int sim_nccl_absent_split(void);
