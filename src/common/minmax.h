/* The smaller and the larger of two sizes. Pure. */
#pragma once

#include <stdint.h>

static inline uint64_t spw_min(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static inline uint64_t spw_max(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}
