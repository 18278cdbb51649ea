/* A process's statistics from their start to the exit handler, which writes the summary and the
 * file. Also used by the launcher for a child that died without running its exit handlers. */
#pragma once

#include <stdbool.h>

#include "stats/stats.h"

/* Starts the statistics: sets the strings, and registers the exit handler. Expands the pattern
 * `path` (%p pid, %r rank, %h host, %% a percent sign), makes it absolute, and removes a file of an
 * earlier run there (the rule is at spw_stats_write). `path` may be NULL: no file. The caller has
 * filled in `call_names` before. Once per mapping; the caller serialises. */
void spw_stats_start(struct spw_stats *stats, const char *mode, const char *why, const char *path,
                     enum spw_summary summary, int device_count);

/* Writes the summary, if it is switched on, and the file; only the first call does so. The exit
 * handler's work: no lock, no allocation. */
void spw_stats_finish(struct spw_stats *stats);
