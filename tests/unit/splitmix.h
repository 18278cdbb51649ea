/* Random numbers for tests (SplitMix64). */
#pragma once

#include <stdint.h>

static uint64_t splitmix_state;

static inline uint64_t draw(uint64_t below)
{
    uint64_t x = splitmix_state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}
