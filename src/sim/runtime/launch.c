/* Kernel launches. */
#include <limits.h>
#include <stddef.h>

#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

/* True if a dimension is zero or over a limit. The driver reports it as an invalid value, the
 * runtime as an invalid configuration. */
static bool dimensions_are_bad(dim3 grid, dim3 block)
{
    static const CUdevice_attribute limits[] = {
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,       CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    };
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    unsigned long long sizes[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, threads};
    CUdevice device;

    if (simrt_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) {
        return false;
    }
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int limit = INT_MAX;
        (void)simrt_driver.cuDeviceGetAttribute(&limit, limits[i], device);
        if (sizes[i] == 0 || sizes[i] > (unsigned int)limit) {
            return true;
        }
    }
    return false;
}

static cudaError_t launch_error(CUresult result, dim3 grid, dim3 block)
{
    if (result == CUDA_ERROR_INVALID_VALUE && dimensions_are_bad(grid, block)) {
        return cudaErrorInvalidConfiguration;
    }
    return simrt_error(result);
}

/* Finds the driver's function for a launch of `kernel` with `shared` bytes of shared memory. */
static cudaError_t find_function(const void *kernel, size_t shared, CUfunction *ret_function)
{
    cudaError_t error = simrt_function_find(kernel, ret_function);

    return error == cudaSuccess && shared > UINT_MAX ? cudaErrorInvalidValue : error;
}

static cudaError_t launch(bool ptsz, const void *kernel, dim3 grid, dim3 block, void **arguments,
                          size_t shared, cudaStream_t stream)
{
    CUfunction function;
    cudaError_t error = find_function(kernel, shared, &function);

    if (error != cudaSuccess) {
        return error;
    }
    CUresult result =
        simrt_driver.cuLaunchKernel[ptsz](function, grid.x, grid.y, grid.z, block.x, block.y,
                                          block.z, (unsigned int)shared, stream, arguments, NULL);
    return launch_error(result, grid, block);
}

SIMRT_API_PTSZ(cudaLaunchKernel, SIMRT_CONTEXT,
               (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                cudaStream_t stream))
{
    return launch(ptsz, kernel, grid, block, arguments, shared, stream);
}

/* Called by code that nvcc 13 compiled, with a handle from __cudaGetKernel(). */
SIMRT_API_PTSZ(__cudaLaunchKernel, SIMRT_CONTEXT,
               (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                cudaStream_t stream))
{
    return launch(ptsz, kernel, grid, block, arguments, shared, stream);
}

SIMRT_API_PTSZ(cudaLaunchCooperativeKernel, SIMRT_CONTEXT,
               (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                cudaStream_t stream))
{
    CUfunction function;
    cudaError_t error = find_function(kernel, shared, &function);

    if (error != cudaSuccess) {
        return error;
    }
    CUresult result = simrt_driver.cuLaunchCooperativeKernel[ptsz](
        function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned int)shared, stream,
        arguments);
    return launch_error(result, grid, block);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attributes are the same");
_Static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value),
               "attributes are the same");

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *config)
{
    return (CUlaunchConfig){
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned int)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
}

/* The driver's arguments for a launch that a configuration describes. */
static cudaError_t driver_launch(const cudaLaunchConfig_t *config, const void *kernel,
                                 CUfunction *ret_function, CUlaunchConfig *ret_config)
{
    if (config == NULL) {
        return cudaErrorInvalidValue;
    }
    *ret_config = driver_config(config);
    return simrt_function_find(kernel, ret_function);
}

SIMRT_API_PTSZ(cudaLaunchKernelExC, SIMRT_CONTEXT,
               (const cudaLaunchConfig_t *config, const void *kernel, void **arguments))
{
    CUfunction function;
    CUlaunchConfig driver;

    if (config != NULL && config->dynamicSmemBytes > UINT_MAX) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = driver_launch(config, kernel, &function, &driver);
    if (error != cudaSuccess) {
        return error;
    }
    CUresult result = simrt_driver.cuLaunchKernelEx[ptsz](&driver, function, arguments, NULL);
    return launch_error(result, config->gridDim, config->blockDim);
}

#define CLUSTER_QUERY(name)                                                                        \
    SIMRT_API(cuda##name, SIMRT_CONTEXT,                                                           \
              (int *ret_count, const void *kernel, const cudaLaunchConfig_t *config))              \
    {                                                                                              \
        CUfunction function;                                                                       \
        CUlaunchConfig driver;                                                                     \
        cudaError_t error = driver_launch(config, kernel, &function, &driver);                     \
        if (error != cudaSuccess) {                                                                \
            return error;                                                                          \
        }                                                                                          \
        return simrt_error(simrt_driver.cu##name(ret_count, function, &driver));                   \
    }

CLUSTER_QUERY(OccupancyMaxPotentialClusterSize)
CLUSTER_QUERY(OccupancyMaxActiveClusters)
