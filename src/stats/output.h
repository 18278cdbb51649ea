/* The result files of a process: the statistics and the recording.
 *
 * Their paths are not in the shared memory (stats.h). A process that has given up its rights can
 * still write to that memory, while the launcher, which has kept its rights, writes the statistics
 * file of a process that was killed. So the launcher reads the paths from symbolic links beside the
 * file of that memory, in the launcher's folder: only a process with the launcher's rights can make
 * them there. No lock, no allocation. */
#pragma once

#include "stats/state.h"

/* Forgets all paths. `shared` is the path of the file of the shared memory; "": there is none. */
void spw_stats_output_begin(const char *shared);

/* Sets a path, which is absolute and shorter than SPW_STATS_PATH; "": no file. The launcher will
 * find it. */
void spw_stats_output_set(enum spw_stats_output output, const char *path);

/* The path that was set; "" when there is none. */
const char *spw_stats_output_path(enum spw_stats_output output);

/* The launcher's part: sets the path that the process with this file of shared memory has set. */
void spw_stats_output_find(enum spw_stats_output output, const char *shared);
