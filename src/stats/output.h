/* The result files of a process: the statistics and the recording.
 *
 * The launcher writes the statistics file of a process that was killed. The launcher must not read
 * the path of that file from the shared memory (stats.h): a process that has given up privileges
 * can still write to this memory, while the launcher has kept its privileges. The paths are
 * therefore stored in symbolic links in the launcher's folder, next to the file of the shared
 * memory. Only a process with the launcher's privileges can create links there. No lock, no
 * allocation. */
#pragma once

#include "stats/state.h"

/* Forgets all paths. `shared` is the path of the shared memory's file; "" if there is none. */
void spw_stats_output_begin(const char *shared);

/* Sets a path, which must be absolute and shorter than SPW_STATS_PATH; "" means no file. The
 * launcher can find the path. */
void spw_stats_output_set(enum spw_stats_output output, const char *path);

/* Returns the path that was set; "" if there is none. */
const char *spw_stats_output_path(enum spw_stats_output output);

/* For the launcher: sets the path that another process has set. `shared` is the file of that
 * process's shared memory. */
void spw_stats_output_find(enum spw_stats_output output, const char *shared);
