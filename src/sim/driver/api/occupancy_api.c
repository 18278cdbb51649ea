/* cuOccupancy*. */
#include "sim/driver/core/context.h"
#include "sim/driver/kernels/module.h"

#include "sim/driver/api/entry.h"

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static CUresult active_blocks(int *ret_blocks, CUfunction handle, int block_size,
                              size_t dynamic_shared)
{
    struct sim_function *function;
    CUresult result = sim_function_resolve(handle, sim_ctx_current(), &function);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (ret_blocks == NULL || block_size <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_blocks = sim_occupancy(function, block_size, dynamic_shared);
    return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, SIM_CONTEXT,
        (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize))
{
    return active_blocks(numBlocks, func, blockSize, dynamicSMemSize);
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, SIM_CONTEXT,
        (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
         unsigned int flags))
{
    return active_blocks(numBlocks, func, blockSize, dynamicSMemSize);
}

/* Finds the block size with the most threads on a multiprocessor, among `limit` and the multiples
 * of the warp size below `limit`. If several sizes are equally good, the largest is chosen. */
static CUresult best_block(int *ret_grid, int *ret_block, CUfunction handle,
                           CUoccupancyB2DSize shared_of_size, size_t dynamic_shared, int limit)
{
    struct sim_function *function;
    CUresult result = sim_function_resolve(handle, sim_ctx_current(), &function);
    int best = 0;
    int best_blocks = 0;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (ret_grid == NULL || ret_block == NULL || limit < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (limit == 0 || limit > (int)function->info->max_threads) {
        limit = (int)function->info->max_threads;
    }
    for (int size = (limit + SIM_WARP_SIZE - 1) / SIM_WARP_SIZE * SIM_WARP_SIZE; size > 0;
         size -= SIM_WARP_SIZE) {
        int tried = smaller(size, limit);
        size_t shared = shared_of_size != NULL ? shared_of_size(tried) : dynamic_shared;
        int blocks = sim_occupancy(function, tried, shared);

        if (blocks * tried > best_blocks * best) {
            best = tried;
            best_blocks = blocks;
        }
    }
    *ret_block = best;
    *ret_grid = best_blocks * function->module->ctx->device->profile->multiprocessors;
    return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxPotentialBlockSize, SIM_CONTEXT,
        (int *minGridSize, int *blockSize, CUfunction func,
         CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit))
{
    return best_block(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                      blockSizeLimit);
}

SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, SIM_CONTEXT,
        (int *minGridSize, int *blockSize, CUfunction func,
         CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
         unsigned int flags))
{
    return best_block(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                      blockSizeLimit);
}

SIM_API(cuOccupancyAvailableDynamicSMemPerBlock, SIM_CONTEXT,
        (size_t * dynamicSmemSize, CUfunction func, int numBlocks, int blockSize))
{
    const struct spw_gpu_profile *profile;
    struct sim_function *function;
    CUresult result = sim_function_resolve(func, sim_ctx_current(), &function);
    size_t taken;
    size_t share;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (dynamicSmemSize == NULL || numBlocks <= 0 || blockSize <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    profile = function->module->ctx->device->profile;
    taken = function->info->shared_bytes + sim_reserved_shared(profile);
    share = (size_t)profile->shared_per_multiprocessor / (size_t)numBlocks;
    *dynamicSmemSize = share > taken ? share - taken : 0;
    return CUDA_SUCCESS;
}

/* Clusters of up to 8 blocks are portable (CUDA programming guide). */
SIM_API(cuOccupancyMaxPotentialClusterSize, SIM_CONTEXT,
        (int *clusterSize, CUfunction func, const CUlaunchConfig *config))
{
    struct sim_function *function;
    CUresult result = sim_function_resolve(func, sim_ctx_current(), &function);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (clusterSize == NULL || config == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *clusterSize = 8;
    return CUDA_SUCCESS;
}

static unsigned int cluster_blocks(const CUlaunchConfig *config)
{
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            return config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                   config->attrs[i].value.clusterDim.z;
        }
    }
    return 1;
}

SIM_API(cuOccupancyMaxActiveClusters, SIM_CONTEXT,
        (int *numClusters, CUfunction func, const CUlaunchConfig *config))
{
    struct sim_function *function;
    CUresult result = sim_function_resolve(func, sim_ctx_current(), &function);
    unsigned int per_cluster;
    int blocks;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (numClusters == NULL || config == NULL || cluster_blocks(config) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    per_cluster = cluster_blocks(config);
    blocks =
        sim_occupancy(function, (int)(config->blockDimX * config->blockDimY * config->blockDimZ),
                      config->sharedMemBytes) *
        function->module->ctx->device->profile->multiprocessors;
    *numClusters = blocks / (int)per_cluster;
    return CUDA_SUCCESS;
}
