/* Finds a program that waits without end for a result that the simulator does not compute.
 *
 * Such a loop launches the same kernels each time, reads a result, and brings nothing new to the
 * device: SPILLWAY_SIM_SPIN reads in a row, with as many launches between them and without a copy
 * to the device, are taken for one.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

/* A kernel was launched; the host copied data to a device; the host read a small result that may
 * not have been computed. */
void sim_spin_launched(void);
void sim_spin_fed(void);
void sim_spin_read(void);

/* True if the program waits without end; says so once. */
bool sim_spin_is_endless(void);
