/* A job that runs one rank without the others, which are absent (SPILLWAY_SIM_WORLD).
 *
 * Communicators then have no board, and the rank waits for no other. Its own data replace the data
 * of other ranks. In a collective it receives its own piece. As a message it receives the last one
 * that it sent to the same rank, if that has the same size. The content of results is therefore
 * meaningless; shapes and memory are right.
 *
 * Locking: thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/libs/common/shim.h"

/* The most bytes that one operation copies to replace data of absent ranks. Larger data is not
 * copied. */
#define SIM_NCCL_ABSENT_BYTES ((size_t)16 << 20)

/* True in such a job. */
bool sim_nccl_others_are_absent(void);

/* Sets the number of ranks of each communicator that the calling thread splits off next. The
 * arguments of NCCL do not contain it: each rank passes a color, and the ranks exchange these
 * colors. The caller is the module that prepares Python for such a job (src/sim/single_rank); it
 * knows the group. Exported. */
SIM_SHIM_EXPORT void spillway_sim_nccl_split(int ranks);

/* That number; 0: not set. */
int sim_nccl_absent_split(void);
