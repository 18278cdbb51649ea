/* A job that runs one rank without the others, which are absent (SPILLWAY_SIM_WORLD).
 *
 * In such a job, communicators have no board, and the rank waits for no other rank. This rank's
 * data replace the data of other ranks. In a collective, this rank receives its own piece. A
 * receive from a rank gets the last message that this rank sent, if the message was sent to that
 * rank in the same group and has the same size. The content of results is therefore meaningless,
 * but shapes and memory are correct.
 *
 * Locking: thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/libs/common/shim.h"

/* The maximum number of bytes that one operation copies to replace data of absent ranks. Larger
 * data is not copied. */
#define SIM_NCCL_ABSENT_BYTES ((size_t)16 << 20)

/* True in a job whose other ranks are absent. */
bool sim_nccl_others_are_absent(void);

/* Sets the number of ranks of each communicator that the calling thread splits off from now on.
 * NCCL's arguments do not contain this number: each rank passes a color, and the ranks exchange
 * their colors. This function is exported for the Python module src/sim/single_rank, which knows
 * the group. */
SIM_SHIM_EXPORT void spillway_sim_nccl_split(int ranks);

/* The number that spillway_sim_nccl_split() set for the calling thread; 0: not set. */
int sim_nccl_absent_split(void);
