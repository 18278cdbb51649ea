/* What a process is called and when it began, from /proc. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The name of a program by its command line, `bytes` of terminated words: the last part of the
 * first and of what it was given to run, which is its first argument, or one behind options that is
 * a script or a module ("python3 train.py"). */
void spw_stats_process_name_of(const char *command, size_t bytes, char *name, size_t capacity);

/* That of the calling program. */
void spw_stats_process_name(char *name, size_t capacity);

/* The script or module that the calling program runs, if it is an interpreter of Python or runs
 * one, else the program. */
void spw_stats_process_program(char *name, size_t capacity);

/* When `pid` began, in clock ticks since boot, and its state letter ('R', 'Z', ...). False when
 * there is no such process. */
bool spw_stats_process_start(int pid, uint64_t *ret_ticks, char *ret_state);

/* The same moment on the clock of file times, rounded up to the next tick. */
struct timespec spw_stats_process_start_time(uint64_t ticks);
