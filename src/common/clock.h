/* Clocks, in nanoseconds since an unspecified moment. No locking. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t spw_clock_read(clockid_t clock)
{
    struct timespec time = {0};

    (void)clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Time that passes, whatever the thread does. */
static inline uint64_t spw_clock_ns(void)
{
    return spw_clock_read(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread. */
static inline uint64_t spw_clock_worked_ns(void)
{
    return spw_clock_read(CLOCK_THREAD_CPUTIME_ID);
}
