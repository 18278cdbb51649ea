/* The clock of the doctor's measurements. No locking. */
#pragma once

#include "common/clock.h"

/* The monotonic clock, in microseconds. */
static inline double spw_cli_now_us(void)
{
    return (double)spw_clock_ns() / 1e3;
}
