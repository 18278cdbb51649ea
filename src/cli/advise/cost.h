/* What memory on the host costs, in the terms of the simulated GPU's cost model. Pure. */
#pragma once

#include <stdint.h>

/* A copy over the link of the simulated GPU, in bytes a nanosecond (src/sim/driver/exec/timing.c).
 */
#define SPW_CLI_ADVISE_LINK 50.0

/* A kernel that reads host memory is slower than a copy: 35 of 50 there. Nothing overlaps. */
#define SPW_CLI_ADVISE_KERNEL_SHARE 0.7

/* The granule of NVIDIA's GPUs: a part of a block on the host is a whole number of them. */
#define SPW_CLI_ADVISE_GRANULE (UINT64_C(2) << 20)

/* Smaller blocks are not split: a part of them would be all or nothing. */
#define SPW_CLI_ADVISE_SPLIT (4 * SPW_CLI_ADVISE_GRANULE)

/* Part of the budget, in permille, that can be live: the rest is lost between blocks. The smallest
 * devices on which training ran (benchmark frag-torch, capacity E) hold 98.0 to 99.6 %; a little
 * more room keeps the first steps, which are not packed yet, from spilling. */
#define SPW_CLI_ADVISE_LIVE_PERMILLE 970

/* Spilling without rules, by the benchmark `spill`, rows `safe`: for each byte that does not fit, a
 * step takes 0.09 ns longer (resnet50 at 20 %) to 0.17 ns (S_1 at 10 %), moves, calls and waits
 * together, at a link of 50 GB/s. The least is used. */
#define SPW_CLI_ADVISE_DEFAULT_NS_PER_BYTE 0.09

/* Mapping a granule of the host, making it accessible and unmapping it when the block is freed: 2,
 * 56 and 30 us, as measured by others on an RTX 4050 (tests/bench/README.md, table A). A block of
 * which only a part is on the host costs that for each such granule whenever it is allocated. */
#define SPW_CLI_ADVISE_REMAP_NS 88000.0

/* `bytes` on the host, of blocks with other parts on the device, that are allocated in a step. */
static inline uint64_t spw_cli_advise_remap_ns(double bytes)
{
    return (uint64_t)(bytes / (double)SPW_CLI_ADVISE_GRANULE * SPW_CLI_ADVISE_REMAP_NS);
}

static inline uint64_t spw_cli_advise_use_ns(double bytes, double link)
{
    return (uint64_t)(bytes / (link * SPW_CLI_ADVISE_KERNEL_SHARE));
}

static inline uint64_t spw_cli_advise_default_ns(uint64_t excess, double link)
{
    return (uint64_t)((double)excess * SPW_CLI_ADVISE_DEFAULT_NS_PER_BYTE *
                      (SPW_CLI_ADVISE_LINK / link));
}
