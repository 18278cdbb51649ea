/* The number of blocks of a kernel that a multiprocessor can hold, from the limits of the profile:
 * threads, blocks and shared memory. Registers are not modelled. */
#include "sim/driver/core/context.h"
#include "sim/driver/kernels/module.h"

/* Shared memory of each block that the system reserves since compute capability 8.0. */
#define RESERVED_SHARED_PER_BLOCK 1024

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

size_t sim_reserved_shared(const struct spw_gpu_profile *profile)
{
    return profile->major >= 8 ? RESERVED_SHARED_PER_BLOCK : 0;
}

int sim_occupancy(const struct sim_function *function, int block_size, size_t dynamic_shared)
{
    const struct spw_gpu_profile *profile = function->module->ctx->device->profile;
    size_t shared = dynamic_shared + function->info->shared_bytes + sim_reserved_shared(profile);
    size_t by_shared = shared == 0 ? (size_t)profile->blocks_per_multiprocessor
                                   : (size_t)profile->shared_per_multiprocessor / shared;
    int threads = (block_size + SIM_WARP_SIZE - 1) / SIM_WARP_SIZE * SIM_WARP_SIZE;
    int blocks = profile->blocks_per_multiprocessor;

    if (threads <= 0 || block_size > (int)function->info->max_threads) {
        return 0;
    }
    blocks = smaller(blocks, profile->threads_per_multiprocessor / threads);
    return by_shared < (size_t)blocks ? (int)by_shared : blocks;
}
