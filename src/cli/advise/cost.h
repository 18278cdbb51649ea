/* The cost of memory on the host, in the terms of the simulated GPU's cost model. Pure. */
#pragma once

#include <stdint.h>

/* Copies over the simulated GPU's link, in bytes a nanosecond (src/sim/driver/exec/timing.c). */
#define SPW_CLI_ADVISE_LINK 50.0

/* A kernel reads host memory more slowly than a copy does: at 35 instead of 50 bytes a nanosecond.
 * The reads do not overlap with anything. */
#define SPW_CLI_ADVISE_KERNEL_SHARE 0.7

/* The granule of NVIDIA's GPUs: a part of a block on the host is a whole number of them. */
#define SPW_CLI_ADVISE_GRANULE (UINT64_C(2) << 20)

/* Smaller blocks are not split: with a few granules, there is hardly a share to choose. */
#define SPW_CLI_ADVISE_SPLIT (4 * SPW_CLI_ADVISE_GRANULE)

/* The part of the budget, in permille, that can be live: the rest is lost between blocks. On the
 * smallest devices that training ran on, 98.0 to 99.6 % was live (benchmark frag-torch, capacity
 * E). The first steps are not packed yet; a little more room keeps them from spilling. */
#define SPW_CLI_ADVISE_LIVE_PERMILLE 970

/* The cost of spilling without rules: at a link of 50 GB/s, each byte that does not fit makes a
 * step 0.09 ns (resnet50 at 20 %) to 0.17 ns (S_1 at 10 %) longer, for moves, calls and waits
 * together (benchmark `spill`, rows `safe`). The lower figure is used. */
#define SPW_CLI_ADVISE_DEFAULT_NS_PER_BYTE 0.09

/* An allocation of a block that is partly on the host costs this for each granule on the host: 2 us
 * to map it, 56 us to make it accessible and 30 us to unmap it when the block is freed. Others
 * measured this on an RTX 4050 (tests/bench/README.md, table A). */
#define SPW_CLI_ADVISE_REMAP_NS 88000.0

/* `bytes`: what a step allocates on the host in blocks that are partly on the device. */
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
