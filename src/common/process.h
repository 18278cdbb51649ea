/* Start of a process, from /proc. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The start of `pid`, in clock ticks since boot, and its state letter ('R', 'Z', ...). Returns
 * false when there is no such process. */
bool spw_process_start(int pid, uint64_t *ret_ticks, char *ret_state);

/* Converts such a start to the clock of file times, rounded up to the next tick. */
struct timespec spw_process_start_time(uint64_t ticks);
