/* Sleeping. No locking. */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps for `ns` nanoseconds, or until a signal. Unlike nanosleep(2), this is not a cancellation
 * point, because the thread may hold a lock, or may be blocking the program's work. */
static inline void spw_sleep_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
                                  .tv_nsec = (long)(ns % 1000000000)};

    (void)syscall(SYS_nanosleep, &time, NULL);
}
