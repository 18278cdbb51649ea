/* The cost of memory on the host, according to the cost model of the simulated GPU. Pure. */
#pragma once

#include "common/minmax.h"

#include <stdint.h>

/* The speed of a copy over the simulated GPU's link, in bytes per nanosecond
 * (src/sim/driver/exec/timing.c). */
#define SPW_CLI_ADVISE_LINK 50.0

/* A kernel reads host memory more slowly than a copy does. This is the ratio of the two speeds: 35
 * to 50 bytes per nanosecond. The reads do not overlap with other work. */
#define SPW_CLI_ADVISE_KERNEL_SHARE 0.7

/* The granule of NVIDIA's GPUs, in bytes. If a part of a block is on the host, the part is a whole
 * number of granules. */
#define SPW_CLI_ADVISE_GRANULE (UINT64_C(2) << 20)

/* Smaller blocks are not split. They have too few granules for a choice of the share. */
#define SPW_CLI_ADVISE_SPLIT (4 * SPW_CLI_ADVISE_GRANULE)

/* The part of the budget that can be live memory, in permille. The rest is lost to gaps between
 * blocks. The smallest devices that run a training have 98.0 to 99.6 % live memory
 * (benchmark frag-torch, capacity E). This value is a little lower, because the blocks of the
 * first steps are not packed yet. */
#define SPW_CLI_ADVISE_LIVE_PERMILLE 970

static inline uint64_t spw_cli_advise_live_bytes(uint64_t budget_bytes)
{
    return budget_bytes / 1000 * SPW_CLI_ADVISE_LIVE_PERMILLE;
}

/* The most that gaps take where blocks are few. Each kind of block can leave a part of a granule
 * free: eight layers lost 11 MiB of 394 MiB with PyTorch 2.11, and 13 MiB of 346 MiB with 2.15. */
#define SPW_CLI_ADVISE_GAPS (8 * SPW_CLI_ADVISE_GRANULE)

/* A budget that has room for so many live bytes, even where blocks are few. */
static inline uint64_t spw_cli_advise_budget_for(uint64_t live_bytes)
{
    return spw_max((live_bytes / SPW_CLI_ADVISE_LIVE_PERMILLE + 1) * 1000,
                   live_bytes + SPW_CLI_ADVISE_GAPS);
}

/* The cost of spilling without rules. On a link of 50 GB/s, each byte that does not fit makes a
 * step longer by 0.09 ns (resnet50 at 20 %) to 0.17 ns (S_1 at 10 %). This includes moves, calls
 * and waits (benchmark `spill`, rows `safe`). The lower figure is used. */
#define SPW_CLI_ADVISE_DEFAULT_NS_PER_BYTE 0.09

/* The cost of a granule on the host, for each allocation and free of a block that is partly on
 * the host: 2 us to map the granule, 56 us to make it accessible and 30 us to unmap it. Others
 * measured these figures on an RTX 4050 (tests/bench/README.md, table A). */
#define SPW_CLI_ADVISE_REMAP_NS 88000.0

/* `bytes` is the number of bytes that a step allocates on the host, in blocks that are partly on
 * the device. */
static inline uint64_t spw_cli_advise_remap_ns(double bytes)
{
    return (uint64_t)(bytes / (double)SPW_CLI_ADVISE_GRANULE * SPW_CLI_ADVISE_REMAP_NS);
}

static inline uint64_t spw_cli_advise_use_ns(double bytes, double link)
{
    return (uint64_t)(bytes / (link * SPW_CLI_ADVISE_KERNEL_SHARE));
}

/* The time of a kernel that touches these bytes, as in the simulated GPU's cost model: 4.3 TB/s, at
 * least 2 us. */
static inline double spw_cli_advise_kernel_ns(double bytes)
{
    return bytes > 2000.0 * 4300.0 ? bytes / 4300.0 : 2000.0;
}

/* The cost of each byte that does not fit and spills. */
static inline double spw_cli_advise_excess_ns(double link)
{
    return SPW_CLI_ADVISE_DEFAULT_NS_PER_BYTE * (SPW_CLI_ADVISE_LINK / link);
}

static inline uint64_t spw_cli_advise_default_ns(uint64_t excess, double link)
{
    return (uint64_t)((double)excess * spw_cli_advise_excess_ns(link));
}
