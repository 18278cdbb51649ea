/* A second shared mapping next to the statistics, for call sites and their charges. It is large and
 * mostly empty. Other processes find it in the same way as the statistics.
 *
 * Locking: the caller serialises all functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stats/stats.h"

/* Maps `bytes` of zeros: a file in the launcher's folder if possible, otherwise a memfd called
 * "spillway-sites", otherwise private memory. Writes the file's path to `ret_path`; "" if it is not
 * a file. After spw_stats_shm_forget it maps again, at the same address. Returns NULL if no address
 * space is available. */
void *spw_stats_shm_create(size_t bytes, char ret_path[SPW_STATS_PATH]);

/* Allocates the file's blocks for [from, from + bytes). A full file system then causes an error
 * here, and not a SIGBUS in the program. Returns false on failure. */
bool spw_stats_shm_back(const void *from, size_t bytes);

/* In a child after fork: replaces the mapping by zeroed memory of the child, at the same address.
 * Returns false if the kernel refuses; the mapping then still belongs to the parent. Only
 * async-signal-safe calls. */
bool spw_stats_shm_forget(void);
