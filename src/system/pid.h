/* Start time, processor time and memory of a process, from /proc. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Reads the start time of `pid`, in clock ticks since boot, and its state letter ('R', 'Z', ...).
 * Returns false if there is no such process. `pid` 0 stands for the calling process. Its own number
 * is not safe: in a /proc of another namespace, that number may belong to another process. */
bool spw_pid_start(int pid, uint64_t *ret_ticks, char *ret_state);

/* Reads the state of `pid`, and the processor time of `pid` and of the children that it waited for,
 * in clock ticks (of sysconf(3)). Returns false if there is no such process. */
bool spw_pid_work(int pid, uint64_t *ret_ticks, char *ret_state);

/* Converts the start time of a process to the clock of file times, rounded up to the next tick. */
struct timespec spw_pid_start_time(uint64_t ticks);

/* Returns the bytes of anonymous memory that the calling process has touched. Pages of files and
 * shared memory do not count. 0 if unknown. */
uint64_t spw_pid_anonymous_bytes(void);
