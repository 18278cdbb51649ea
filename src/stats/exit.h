/* Begins a process's statistics, and ends them in the exit handler, which writes the summary and
 * the file. The launcher also uses these functions, for a child that died without running its exit
 * handlers. */
#pragma once

#include <stdbool.h>

#include "stats/stats.h"

/* Starts the statistics: sets the strings, and registers the exit handler. Expands the pattern
 * `path` (%p pid, %r rank, %h host, %% a percent sign) and makes it absolute. Removes a file of an
 * earlier run at that path; spw_stats_write gives the rule. `path` may be NULL: no file is written.
 * The caller has set `call_names` before. Called once per mapping; the caller serialises calls. */
void spw_stats_start(struct spw_stats *stats, const char *mode, const char *why, const char *path,
                     enum spw_summary summary, int device_count);

/* Writes the summary, if it is switched on, and the file. Only the first call does so. The exit
 * handler calls this function: it takes no lock and allocates nothing. */
void spw_stats_finish(struct spw_stats *stats);
