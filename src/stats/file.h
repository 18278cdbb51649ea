/* The statistics file: JSON. docs/reference/statistics.md explains its keys. */
#pragma once

#include <stdbool.h>

#include "stats/stats.h"
#include "system/write.h"

/* Writes the file under a temporary name, and renames it. Returns true also if nothing is to be
 * written: no path is set, or the name contains a rank (%r) and the process used no device memory.
 * On an error, writes one line to stderr and returns false. No lock, no allocation, because the
 * exit handler, every out of memory, and the launcher call this function.
 *
 * Several processes may have the same path. The first process to write gets the name itself; every
 * other process appends ".PID". A process that writes again replaces its own file. A process that
 * starts its statistics removes an older statistics file at the path, unless that file belongs to a
 * process with a mapping in SPILLWAY_RUN_DIR. The name is taken with link(2), which succeeds for
 * only one process. If the path is a device or a pipe (/dev/stderr), the file is written in
 * place. */
bool spw_stats_write(struct spw_stats *stats);

/* Sets a function that writes more keys behind the devices, each with a comma before it. `put` may
 * run on any thread and at process exit, so it must not take a lock that could make it wait. */
void spw_stats_extend(void (*put)(struct spw_writer *writer));
