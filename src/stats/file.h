/* The statistics file: JSON. docs/statistics.md explains its keys. */
#pragma once

#include <stdbool.h>

#include "stats/stats.h"
#include "system/write.h"

/* Writes the file under a temporary name and renames it. Also returns true when no path is set, or
 * when the name is for a rank (%r) and the process used no device memory; false, after one line on
 * stderr, on an error. No lock, no allocation: it is used by the exit handler, at every out of
 * memory, and by the launcher.
 *
 * Several processes may have the same path. The first to write gets the name, every other appends
 * ".PID"; a process that writes again replaces its own file. A process that starts its statistics
 * removes an older statistics file at the path, unless that file is from a process with a mapping
 * in SPILLWAY_RUN_DIR. The name is taken with link(2), which only one process can do. A device or
 * pipe at the path (/dev/stderr) is written in place. */
bool spw_stats_write(struct spw_stats *stats);

/* Sets a function that adds keys of its own behind the devices, each with a comma before it. `put`
 * may run on any thread and at process exit, so it takes no lock that could wait. */
void spw_stats_extend(void (*put)(struct spw_writer *writer));
