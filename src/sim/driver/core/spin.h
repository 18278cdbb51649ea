/* Detects a program that waits forever for a result that the simulator does not compute.
 *
 * In a loop, such a program launches the same kernels, reads a result, and copies nothing to the
 * device. A loop is detected after SPILLWAY_SIM_SPIN reads in a row, with equal numbers of launches
 * between the reads and no copy to the device.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

/* Must be called when a kernel was launched, when the host has copied data to a device, and when
 * the host has read a small result that may not have been computed, respectively. */
void sim_spin_launched(void);
void sim_spin_fed(void);
void sim_spin_read(void);

/* True if the program waits forever. Warns once. */
bool sim_spin_is_endless(void);
