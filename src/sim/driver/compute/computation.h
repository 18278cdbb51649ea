/* Kernels of PyTorch and CUB that are really computed.
 *
 * A kernel is known by its name, in which its types and functors stand, and by the layout of its
 * arguments; no instruction is read. Small ones are computed, so that a program's decisions are
 * those of a real run: how many elements a mask has, if a sequence has ended. A launch whose
 * arguments do not look as they should does nothing.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include "sim/driver/compute/call.h"

struct sim_computation;

/* The computation of a kernel by its mangled name, to be freed by the caller. NULL if it is not
 * known. */
struct sim_computation *sim_computation_read(const char *name);

/* Computes a launch, if it is small enough. */
enum sim_outcome_of_call sim_computation_run(const struct sim_computation *computation,
                                             const struct sim_call *call);
