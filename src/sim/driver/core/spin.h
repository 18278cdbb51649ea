/* Finds a program that waits without end for a result that the simulator does not compute.
 *
 * In a loop, such a program launches the same kernels, reads a result, and copies nothing to the
 * device. The loop is detected by SPILLWAY_SIM_SPIN reads in a row, with equal numbers of launches
 * in between and no copy to the device.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

/* To be called when a kernel was launched, when the host copied data to a device, and when the host
 * read a small result that may not have been computed. */
void sim_spin_launched(void);
void sim_spin_fed(void);
void sim_spin_read(void);

/* True if the program waits without end. Warns once. */
bool sim_spin_is_endless(void);
