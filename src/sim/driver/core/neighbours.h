/* The other processes of the run, which share the devices with this one (sim/devices.h).
 *
 * Without a launcher, or where the file cannot be used, this process is alone: no function fails.
 *
 * Locking: the simulator's lock (core/lock.h) is held. A process waits for the others for at most
 * two seconds, and goes on without the lock of the file then: its holder may be stopped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CUDA was initialised: takes a slot. */
void sim_neighbours_start(void);

/* To be called in a child after fork: lets go of the parent's slot. */
void sim_neighbours_forget(void);

/* Bytes of the device of that index that other processes hold. What a process held that has ended
 * is free. */
uint64_t sim_neighbours_used(int index);

/* This process holds `used` bytes of the device and asks for `more` of its `total` bytes. True when
 * they fit, and then they count as held. *ret_free: what was free before, for this process. */
bool sim_neighbours_grow(int index, uint64_t total, uint64_t used, uint64_t more,
                         uint64_t *ret_free);

/* This process holds `used` bytes of the device now: less than before. */
void sim_neighbours_shrink(int index, uint64_t used);

enum { SIM_NEIGHBOURS = 256 }; /* most processes that are listed */

struct sim_neighbour {
    int pid;
    uint64_t bytes;
};

/* Lists the processes that hold memory of the device, this one too. Returns how many there are, of
 * which the first `most` are written. */
int sim_neighbours_list(int index, struct sim_neighbour *ret_list, int most);
