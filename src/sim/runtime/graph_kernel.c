#include "sim/runtime/graph_kernel.h"

#include <stddef.h>
#include <string.h>

#include "sim/runtime/copy.h"
#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

/* The driver's description of a kernel node, in either version of the driver's struct. */
#define DRIVER_KERNEL(params, function)                                                            \
    {                                                                                              \
        .func = function, .gridDimX = params->gridDim.x, .gridDimY = params->gridDim.y,            \
        .gridDimZ = params->gridDim.z, .blockDimX = params->blockDim.x,                            \
        .blockDimY = params->blockDim.y, .blockDimZ = params->blockDim.z,                          \
        .sharedMemBytes = params->sharedMemBytes, .kernelParams = params->kernelParams,            \
        .extra = params->extra,                                                                    \
    }

cudaError_t simrt_kernel_params(const struct cudaKernelNodeParams *params,
                                CUDA_KERNEL_NODE_PARAMS *ret_params)
{
    CUfunction function;

    if (params == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = simrt_function_find(params->func, &function);
    if (error != cudaSuccess) {
        return error;
    }
    *ret_params = (CUDA_KERNEL_NODE_PARAMS)DRIVER_KERNEL(params, function);
    return cudaSuccess;
}

SIMRT_API(cudaGraphKernelNodeGetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, struct cudaKernelNodeParams *ret_params))
{
    CUDA_KERNEL_NODE_PARAMS driver;

    if (ret_params == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = simrt_driver.cuGraphKernelNodeGetParams(node, &driver);
    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    const void *handle = driver.func != NULL ? (const void *)driver.func : driver.kern;
    *ret_params = (struct cudaKernelNodeParams){
        .func = (void *)simrt_function_host(handle),
        .gridDim = {driver.gridDimX, driver.gridDimY, driver.gridDimZ},
        .blockDim = {driver.blockDimX, driver.blockDimY, driver.blockDimZ},
        .sharedMemBytes = driver.sharedMemBytes,
        .kernelParams = driver.kernelParams,
        .extra = driver.extra,
    };
    return cudaSuccess;
}

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams),
               "common parameters have one size");
_Static_assert(sizeof(struct cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
               "parameters of allocating nodes are the same");

static cudaError_t driver_kernel(const struct cudaKernelNodeParamsV2 *params,
                                 CUDA_KERNEL_NODE_PARAMS_v3 *ret_params)
{
    CUfunction function;
    cudaError_t error = simrt_function_find(params->func, &function);

    if (error != cudaSuccess) {
        return error;
    }
    *ret_params = (CUDA_KERNEL_NODE_PARAMS_v3)DRIVER_KERNEL(params, function);
    return cudaSuccess;
}

cudaError_t simrt_node_params(const struct cudaGraphNodeParams *params,
                              CUgraphNodeParams *ret_params)
{
    CUcontext context;
    cudaError_t error = params == NULL ? cudaErrorInvalidValue : simrt_context_current(&context);

    if (error != cudaSuccess) {
        return error;
    }
    CUgraphNodeParams driver = {.type = (CUgraphNodeType)params->type};
    switch (params->type) {
    case cudaGraphNodeTypeKernel:
        error = driver_kernel(&params->kernel, &driver.kernel);
        break;
    case cudaGraphNodeTypeMemcpy:
        driver.memcpy.copyCtx = context;
        error = simrt_copy_3d(&params->memcpy.copyParams, &driver.memcpy.copyParams);
        break;
    case cudaGraphNodeTypeMemset:
        driver.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
            .dst = (CUdeviceptr)params->memset.dst,
            .pitch = params->memset.pitch,
            .value = params->memset.value,
            .elementSize = params->memset.elementSize,
            .width = params->memset.width,
            .height = params->memset.height,
            .ctx = context,
        };
        break;
    case cudaGraphNodeTypeConditional:
        driver.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
            .handle = params->conditional.handle,
            .type = (CUgraphConditionalNodeType)params->conditional.type,
            .size = params->conditional.size,
            .ctx = context,
        };
        break;
    default: /* the layout is the same in the runtime and in the driver */
        memcpy(driver.reserved1, params->reserved1, sizeof(driver.reserved1));
        break;
    }
    if (error == cudaSuccess) {
        *ret_params = driver;
    }
    return error;
}

SIMRT_API(cudaGraphAddNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *inout_params))
{
    CUgraphNodeParams driver;
    cudaError_t error = simrt_node_params(inout_params, &driver);

    if (error != cudaSuccess) {
        return error;
    }
    CUresult result = simrt_driver.cuGraphAddNode(ret_node, graph, dependencies,
                                                  (const CUgraphEdgeData *)edges, count, &driver);
    if (result == CUDA_SUCCESS && inout_params->type == cudaGraphNodeTypeMemAlloc) {
        inout_params->alloc.dptr = (void *)driver.alloc.dptr;
    }
    if (result == CUDA_SUCCESS && inout_params->type == cudaGraphNodeTypeConditional) {
        inout_params->conditional.phGraph_out = driver.conditional.phGraph_out;
    }
    return simrt_error(result);
}

SIMRT_API(cudaGraphConditionalHandleCreate, SIMRT_CONTEXT,
          (cudaGraphConditionalHandle * ret_handle, cudaGraph_t graph, unsigned int launch_value,
           unsigned int flags))
{
    CUgraphConditionalHandle handle;
    CUcontext context;
    CUresult result = simrt_driver.cuCtxGetCurrent(&context);

    if (result == CUDA_SUCCESS) {
        result = simrt_driver.cuGraphConditionalHandleCreate(&handle, graph, context, launch_value,
                                                             flags);
    }
    if (result == CUDA_SUCCESS) {
        *ret_handle = handle;
    }
    return simrt_error(result);
}
