/* Derives the demand of a launch (exec/roofline.h) from the kernel's name, its grid and its
 * arguments. The kernels of the simulated libraries bring their demand along.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include "sim/driver/exec/roofline.h"
#include "sim/driver/kernels/kernel.h"

/* Returns the facts about a kernel's demand that its name shows. */
struct sim_kernel_traits sim_launch_traits(const char *name);

/* Returns the demand of a launch with known arguments. Allocates nothing. */
struct sim_demand sim_launch_demand(const struct sim_kernel_info *info,
                                    const CUDA_KERNEL_NODE_PARAMS *params,
                                    const unsigned char *args, int device);
