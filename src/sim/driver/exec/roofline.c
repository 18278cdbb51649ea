#include "sim/driver/exec/roofline.h"

/* The time of an empty kernel, with the gap before it. */
#define KERNEL_NS 2500.0

/* The L2 cache still holds a part of the data that the previous kernel has written. A kernel reads
 * up to this part of the cache's size from the cache. The cache is this many times as fast as
 * memory. */
#define CACHE_PART  0.6
#define CACHE_SPEED 3.0

/* The parts that a kind of work reaches: of the sustained rate of products, and of the bandwidth of
 * memory. The parts for convolutions, elements, casts, reductions, rows and named memory were
 * fitted to 7 rows of tests/fit/data/times. The others are guesses; the part for runs is that of
 * unknown kernels. */
static const struct {
    double operations, bytes;
} parts[SIM_WORKS] = {
    [SIM_WORK_NAMED] = {1, 0.55},
    [SIM_WORK_PRODUCT] = {1, 0.8},
    [SIM_WORK_UNALIGNED] = {0.35, 0.8},
    [SIM_WORK_CONVOLUTION] = {1, 0.8},
    [SIM_WORK_CONVOLUTION_BACK] = {1, 0.44},
    [SIM_WORK_GROUPED] = {0.5, 0.32},
    [SIM_WORK_GROUPED_BACK] = {0.5, 0.19},
    [SIM_WORK_ATTENTION] = {0.55, 0.8},
    [SIM_WORK_ELEMENTS] = {1, 0.92},
    [SIM_WORK_CASTS] = {1, 0.55},
    [SIM_WORK_RUNS] = {1, 0.75},
    [SIM_WORK_STRIDED] = {1, 0.35},
    [SIM_WORK_LISTS] = {1, 0.7},
    [SIM_WORK_REDUCTION] = {1, 0.6},
    [SIM_WORK_ROWS] = {1, 0.75},
    [SIM_WORK_OTHER] = {1, 0.75},
};

/* Returns the bytes that a kernel moves in memory. Bytes that it reads from the cache count
 * less. */
static double bytes_of(const struct sim_demand *demand, const struct spw_gpu_profile *profile)
{
    double bytes = (double)demand->bytes, cached = CACHE_PART * profile->l2_bytes;

    cached = cached < bytes / 2 ? cached : bytes / 2;
    return bytes - cached * (1 - 1 / CACHE_SPEED);
}

struct sim_roofline sim_roofline_of(const struct sim_demand *demand,
                                    const struct spw_gpu_profile *profile)
{
    double memory = spw_gpu_memory_rate(profile) * parts[demand->work].bytes;
    struct sim_roofline time = {0};

    if (demand->work == SIM_WORK_MORE) {
        return time;
    }
    if (demand->operations > 0) {
        time.computing = (double)demand->operations /
                         (spw_gpu_rate(profile, demand->type) * parts[demand->work].operations);
    }
    time.moving = bytes_of(demand, profile) / memory;
    time.besides = (double)demand->besides / memory;
    time.ns =
        KERNEL_NS + (time.computing > time.moving ? time.computing : time.moving) + time.besides;
    return time;
}
