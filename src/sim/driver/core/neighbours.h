/* The other processes of the run, which share the devices with this one (sim/devices.h).
 *
 * Without a launcher or without a usable file, this process counts as the only one. No function
 * fails.
 *
 * Locking: the simulator's lock (core/lock.h) is held. A process waits at most two seconds for the
 * lock of the shared file, because the process that holds the lock may be stopped. After two
 * seconds, it continues without the lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes a slot of the shared file. Must be called when CUDA has been initialised. */
void sim_neighbours_start(void);

/* Detaches from the parent's slot. Must be called in a child after fork. */
void sim_neighbours_forget(void);

/* Bytes of the device of that index that other live processes hold. */
uint64_t sim_neighbours_used(int index);

/* Asks for `more` bytes of the device, which has `total` bytes. This process already holds `used`
 * of them. If the new bytes fit, returns true, and the bytes count as held. *ret_free is set to the
 * bytes that were free before. */
bool sim_neighbours_grow(int index, uint64_t total, uint64_t used, uint64_t more,
                         uint64_t *ret_free);

/* This process now holds `used` bytes of the device: fewer than before, or more that nobody could
 * refuse. */
void sim_neighbours_hold(int index, uint64_t used);

/* Records that the machine died of the memory of this device; returns true if it did. */
void sim_neighbours_die(int index);
bool sim_neighbours_died(int index);

enum { SIM_NEIGHBOURS = 256 }; /* maximum number of processes in a list */

struct sim_neighbour {
    int pid;
    uint64_t bytes;
};

/* Lists the processes that hold memory of the device, including this one. Returns their number and
 * writes the first `most`. */
int sim_neighbours_list(int index, struct sim_neighbour *ret_list, int most);
