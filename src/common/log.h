/* Messages of the preload object: one write(2) per line, to stderr or a file, no allocation, never
 * stdout, nothing before the first CUDA initialisation. A line is "spillway: text". Re-entrance and
 * signals are safe, errno is kept; a message longer than the buffer is cut. The first function that
 * decides an error reports it, once; library layers below stay at debug. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

enum spw_log_level { SPW_LOG_ERROR, SPW_LOG_INFO, SPW_LOG_DEBUG };

/* Sets level and target from SPILLWAY_LOG, and reports a value it cannot use: the caller who
 * reports the other options leaves this one out. A path that cannot be opened: stderr, with one
 * line. Once per process; a child after fork keeps its parent's. */
void spw_log_init(void);

/* Whether a message of this level would be written: for messages that are costly to make. */
bool spw_log_enabled(enum spw_log_level level);

/* One line of `level`. */
void spw_log(enum spw_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A line the user must see whatever the level, always on stderr: announcements, out of memory. */
void spw_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
