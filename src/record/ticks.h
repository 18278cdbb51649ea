/* The processor's own clock. Reading it takes a few nanoseconds, less than half the time of reading
 * the system's clock. Its unit is not known, so the writer compares it with the system's clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "system/clock.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <x86intrin.h>
#endif

/* Returns false if the processor's clock may stop or change its speed. */
static inline bool spw_record_ticks_are_steady(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & 1u << 8) != 0;
#else
    return true;
#endif
}

static inline uint64_t spw_record_ticks_read(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return spw_clock_ns();
#endif
}
