/* The thread that calls the program back (callback.h) and, after each call, runs the items that can
 * run.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

/* Starts the thread if it does not run yet. CUDA_ERROR_OPERATING_SYSTEM. */
CUresult sim_callback_start(void);
