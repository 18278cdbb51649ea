/* Clocks, in nanoseconds since an unspecified time. No locking. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t spw_clock_read(clockid_t clock)
{
    struct timespec time = {0};

    (void)clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Returns elapsed time, which does not depend on the thread's work. */
static inline uint64_t spw_clock_ns(void)
{
    return spw_clock_read(CLOCK_MONOTONIC);
}

/* The clock of a simulated device; NULL: there is none. Set once, before anything is measured. */
typedef unsigned long long spw_clock_source(void);
extern spw_clock_source *_Atomic spw_clock_simulated;

static inline uint64_t spw_clock_simulated_or(clockid_t clock)
{
    spw_clock_source *source = atomic_load_explicit(&spw_clock_simulated, memory_order_relaxed);

    return source != NULL ? source() : spw_clock_read(clock);
}

/* Returns the clock of the simulated device; without one, elapsed time. For reports, and for
 * decisions about the program's speed. Not for waits, because a wait takes no simulated time. With
 * a simulated device, reading this clock takes as long as a driver call. */
static inline uint64_t spw_clock_measured_ns(void)
{
    return spw_clock_simulated_or(CLOCK_MONOTONIC);
}

/* Returns the CPU time of the calling thread. With a simulated device, returns the time of the
 * device's clock, because only driver calls take simulated time. */
static inline uint64_t spw_clock_worked_ns(void)
{
    return spw_clock_simulated_or(CLOCK_THREAD_CPUTIME_ID);
}
