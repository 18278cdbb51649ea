/* Shares a device with other processes under spillway: SPILLWAY_SHARE=NAME.
 *
 * Each process is entitled to a share of the device, in proportion to its weight. It may use more
 * than its share while memory is free. If a process has less than its share and finds the device
 * full, it asks the other processes for memory. A process that has more than its share then moves
 * blocks to the host, in a thread of spillway's own. Every process that is asked gives up its
 * unused memory.
 *
 * The processes find each other through a file in memory, which is named after the share and the
 * device. They share no lock: each process writes only its own entry, and sends requests with
 * atomic operations. A process may therefore be stopped or killed at any moment. Other processes
 * wait for it only for a bounded time.
 *
 * Limits: processes of one user, in one pid namespace, at most 63. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device/state.h"

/* Joins the share of each device that has an open pool, if the option is set. Joins each share only
 * once. No lock. */
void spw_service_share_join(void);

/* In a child after fork: forgets all shares. The child has joined none. */
void spw_service_share_forget(void);

/* Asks the other processes for `bytes` of a full device, up to the share of this process. Returns
 * true if memory was freed. Waits at most a few seconds. Called with a lease and without a lock. */
bool spw_service_share_ask(struct spw_device *device, uint64_t bytes);
