/* Messages of the preloaded object, as lines "spillway: text" on stderr or in a file, never on
 * stdout.
 *
 * Each line is one write(2), without allocation; longer lines are cut, and control characters in
 * names and values are replaced. Safe in signal handlers and when re-entered; errno is kept.
 * Nothing is written before the first CUDA initialisation. The function that detects an error
 * reports it, once; its callers use at most the level debug. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

enum spw_log_level { SPW_LOG_ERROR, SPW_LOG_INFO, SPW_LOG_DEBUG };

/* Sets level and target from SPILLWAY_LOG, and reports a bad value. If the path cannot be opened,
 * one line reports it, and messages go to stderr. Called once per process; a child after fork keeps
 * its parent's settings. */
void spw_log_init(void);

/* Returns true when messages of this level are written. Ask before an expensive message. */
bool spw_log_enabled(enum spw_log_level level);

/* Writes one line if `level` is enabled; to stderr if the line cannot be written to the log
 * file. */
void spw_log(enum spw_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a line that the user must see: always to stderr, at every level. */
void spw_log_always(const char *format, ...) __attribute__((format(printf, 1, 2)));
