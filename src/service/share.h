/* Sharing a device with other processes under spillway: SPILLWAY_SHARE=NAME.
 *
 * Each process is entitled to a share of the device by its weight, and may take more while memory
 * is free. A process that has less than its share and finds the device full asks the others. A
 * process that has more than its share then moves blocks to the host, in a thread of its own. Free
 * memory that a process keeps for itself is given in any case.
 *
 * The processes find each other in a file in memory, by the name and the device. No lock is shared:
 * each writes its own entry, and requests to others are atomic. So a process may be stopped or
 * killed at any moment; others wait for it for a bounded time.
 *
 * Limits: processes of one user, in one pid namespace, at most 63. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device/state.h"

/* Joins, for each device with an open pool, once, if the option is set. No lock. */
void spw_service_share_join(void);

/* In a child after fork: it has joined nothing. */
void spw_service_share_forget(void);

/* Asks the others for `bytes` of a full device, up to the share of this process. True when memory
 * was freed. Waits at most a few seconds. Called with a lease and without a lock. */
bool spw_service_share_ask(struct spw_device *device, uint64_t bytes);
