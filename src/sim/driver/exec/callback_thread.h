/* The thread that calls functions of the program (callback.h). After each call, it runs the queued
 * items that can run.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

/* Starts the thread if it is not running. CUDA_ERROR_OPERATING_SYSTEM. */
CUresult sim_callback_start(void);
