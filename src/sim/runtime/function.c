/* Kernels: attributes, names, parameters and occupancy. */
#include <stddef.h>
#include <string.h>

#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

SIMRT_API(cudaGetFuncBySymbol, SIMRT_CONTEXT, (cudaFunction_t * ret_function, const void *symbol),
          (ret_function, symbol))
{
    if (ret_function == NULL) {
        return cudaErrorInvalidValue;
    }
    return simrt_function_find(symbol, ret_function);
}

/* An attribute; 0 if the driver does not know it. */
static int attribute_or_zero(CUfunction function, CUfunction_attribute attribute)
{
    int value = 0;
    CUresult result = simrt_driver.cuFuncGetAttribute(&value, attribute, function);

    return result == CUDA_SUCCESS ? value : 0;
}

SIMRT_API(cudaFuncGetAttributes, SIMRT_CONTEXT,
          (struct cudaFuncAttributes * ret_attributes, const void *kernel),
          (ret_attributes, kernel))
{
    CUfunction function;

    if (ret_attributes == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = simrt_function_find(kernel, &function);
    if (error != cudaSuccess) {
        return error;
    }
    memset(ret_attributes, 0, sizeof(*ret_attributes));
#define ATTRIBUTE(field, attribute)                                                                \
    ret_attributes->field = attribute_or_zero(function, CU_FUNC_ATTRIBUTE_##attribute)
    ATTRIBUTE(sharedSizeBytes, SHARED_SIZE_BYTES);
    ATTRIBUTE(constSizeBytes, CONST_SIZE_BYTES);
    ATTRIBUTE(localSizeBytes, LOCAL_SIZE_BYTES);
    ATTRIBUTE(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
    ATTRIBUTE(numRegs, NUM_REGS);
    ATTRIBUTE(ptxVersion, PTX_VERSION);
    ATTRIBUTE(binaryVersion, BINARY_VERSION);
    ATTRIBUTE(cacheModeCA, CACHE_MODE_CA);
    ATTRIBUTE(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES);
    ATTRIBUTE(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT);
    ATTRIBUTE(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET);
    ATTRIBUTE(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH);
    ATTRIBUTE(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT);
    ATTRIBUTE(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH);
    ATTRIBUTE(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    ATTRIBUTE(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
#undef ATTRIBUTE
    return cudaSuccess;
}

SIMRT_API(cudaFuncSetAttribute, SIMRT_CONTEXT,
          (const void *kernel, enum cudaFuncAttribute attribute, int value),
          (kernel, attribute, value))
{
    CUfunction function;
    cudaError_t error = simrt_function_find(kernel, &function);

    if (error != cudaSuccess) {
        return error;
    }
    CUfunction_attribute driver_attribute = (CUfunction_attribute)attribute;
    return simrt_error(simrt_driver.cuFuncSetAttribute(function, driver_attribute, value));
}

SIMRT_API(cudaFuncSetCacheConfig, SIMRT_CONTEXT, (const void *kernel, enum cudaFuncCache config),
          (kernel, config))
{
    CUfunction function;
    cudaError_t error = simrt_function_find(kernel, &function);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuFuncSetCacheConfig(function, (CUfunc_cache)config));
}

SIMRT_API(cudaFuncSetSharedMemConfig, SIMRT_CONTEXT,
          (const void *kernel, enum cudaSharedMemConfig config), (kernel, config))
{
    CUfunction function;
    cudaError_t error = simrt_function_find(kernel, &function);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuFuncSetSharedMemConfig(function, (CUsharedconfig)config));
}

SIMRT_API(cudaFuncGetName, SIMRT_CONTEXT, (const char **ret_name, const void *kernel),
          (ret_name, kernel))
{
    CUkernel handle;

    if (ret_name == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = simrt_kernel_find(kernel, &handle);
    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuKernelGetName(ret_name, handle));
}

SIMRT_API(cudaFuncGetParamInfo, SIMRT_CONTEXT,
          (const void *kernel, size_t index, size_t *ret_offset, size_t *ret_size),
          (kernel, index, ret_offset, ret_size))
{
    CUfunction function;
    cudaError_t error = simrt_function_find(kernel, &function);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuFuncGetParamInfo(function, index, ret_offset, ret_size));
}

static cudaError_t occupancy(int *ret_count, const void *kernel, int block_size, size_t shared,
                             unsigned int flags)
{
    CUfunction function;
    cudaError_t error = simrt_function_find(kernel, &function);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        ret_count, function, block_size, shared, flags));
}

SIMRT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, SIMRT_CONTEXT,
          (int *ret_count, const void *kernel, int block_size, size_t shared),
          (ret_count, kernel, block_size, shared))
{
    return occupancy(ret_count, kernel, block_size, shared, CU_OCCUPANCY_DEFAULT);
}

SIMRT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, SIMRT_CONTEXT,
          (int *ret_count, const void *kernel, int block_size, size_t shared, unsigned int flags),
          (ret_count, kernel, block_size, shared, flags))
{
    return occupancy(ret_count, kernel, block_size, shared, flags);
}

SIMRT_API(cudaOccupancyAvailableDynamicSMemPerBlock, SIMRT_CONTEXT,
          (size_t * ret_size, const void *kernel, int block_count, int block_size),
          (ret_size, kernel, block_count, block_size))
{
    CUfunction function;
    cudaError_t error = simrt_function_find(kernel, &function);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuOccupancyAvailableDynamicSMemPerBlock(
        ret_size, function, block_count, block_size));
}
