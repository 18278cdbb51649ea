/* A second shared mapping beside the statistics: call sites and their charges, large and mostly
 * empty. Other processes find it in the same way as the statistics.
 *
 * Locking: the caller serialises all functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stats/stats.h"

/* Maps `bytes` of zeros: a file in the launcher's folder if possible, then a memfd called
 * "spillway-sites", then private memory. Writes the file's path to `ret_path`, "" when it is no
 * file. After spw_stats_shm_forget it maps again, at the same address. Returns NULL when no address
 * space is available. */
void *spw_stats_shm_create(size_t bytes, char ret_path[SPW_STATS_PATH]);

/* Allocates the file's blocks for [from, from + bytes), so that a full file system is an error here
 * and not a SIGBUS in the program. Returns false when that fails. */
bool spw_stats_shm_back(const void *from, size_t bytes);

/* In a child after fork: replaces the mapping by zeroed memory of its own at the same address.
 * False when the kernel refuses that; the mapping is then still the parent's. Only
 * async-signal-safe calls. */
bool spw_stats_shm_forget(void);
