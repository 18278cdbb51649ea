/* The part of a memory that device and host share which stays free for the system
 * (SPILLWAY_MEMORY_RESERVE). */
#pragma once

#include "common/minmax.h"
#include "common/options.h"

/* Returns the reserve of a machine with `total` bytes, at most a half of them. The default is a
 * sixteenth, at least 512 MiB. */
static inline uint64_t spw_reserve_of(uint64_t total)
{
    enum { SHARE = 16 };
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_MEMORY_RESERVE, NULL, 0);
    uint64_t usual = spw_max(total / SHARE, UINT64_C(512) << 20);

    return spw_min(option.set ? spw_option_bytes(&option, total) : usual, total / 2);
}
