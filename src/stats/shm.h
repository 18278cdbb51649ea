/* A second mapping beside the statistics, for what is large and mostly empty: the call sites and
 * what they hold. Others find it as they find the statistics.
 *
 * Locking: creating, forgetting and backing are the caller's to serialise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stats/stats.h"

/* Maps `bytes` of zeros: a file in the launcher's folder, else a memfd called "spillway-sites",
 * else memory that nobody else sees. Again after spw_stats_shm_forget, at the same address then.
 * Writes the file's path, "" when it is none. NULL when the addresses cannot be had. */
void *spw_stats_shm_create(size_t bytes, char ret_path[SPW_STATS_PATH]);

/* Sees to it that [from, from + bytes) of the room can be written: a full file system must show
 * here, not as SIGBUS in the middle of somebody's program. False when it cannot. */
bool spw_stats_shm_back(const void *from, size_t bytes);

/* In a child after fork: the room becomes private memory, zeroed, at the same address. Only
 * async-signal-safe calls. */
void spw_stats_shm_forget(void);
