/* The end of a machine whose device and host share one memory, when both together take more than it
 * has.
 *
 * Such a machine hangs as a whole. Here, the processes that use the device are killed instead, and
 * the record says why.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdint.h>

#include "sim/driver/core/device.h"

/* Kills this process, because device and host together need `wanted` bytes. The other processes
 * that use the device are killed at their next call, with `wanted` 0. */
void sim_machine_die(const struct sim_device *device, uint64_t wanted) __attribute__((noreturn));
