/* Messages of the preloaded object, as lines "spillway: text" on stderr or in a file, never on
 * stdout.
 *
 * Each line is one write(2), without allocation. Longer lines are truncated, and control characters
 * in names and values are replaced. Safe in signal handlers and when re-entered; errno is
 * preserved. Nothing is written before the first CUDA initialisation. An error is reported once, by
 * the function that detects it. The callers of that function log at level debug at most. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

enum spw_log_level { SPW_LOG_ERROR, SPW_LOG_INFO, SPW_LOG_DEBUG };

/* Sets level and target from SPILLWAY_LOG, and reports an invalid value. If the path cannot be
 * opened, one line reports this, and messages go to stderr. Called once per process. A child after
 * fork keeps its parent's settings. */
void spw_log_init(void);

/* Returns true if messages of this level are written. Call it before an expensive message is
 * built. */
bool spw_log_enabled(enum spw_log_level level);

/* Writes one line if `level` is enabled. If the line cannot be written to the log file, writes it
 * to stderr. */
void spw_log(enum spw_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a line that the user must see, to stderr at every level. */
void spw_log_always(const char *format, ...) __attribute__((format(printf, 1, 2)));
