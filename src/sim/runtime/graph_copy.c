/* Graph nodes that copy or fill memory. */
#include <stddef.h>

#include "sim/runtime/copy.h"
#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

static cudaError_t add_copy(cudaGraphNode_t *ret_node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t count,
                            const CUDA_MEMCPY3D *copy)
{
    CUcontext context;
    cudaError_t error = simrt_context_current(&context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(
        simrt_driver.cuGraphAddMemcpyNode(ret_node, graph, dependencies, count, copy, context));
}

static cudaError_t set_exec_copy(cudaGraphExec_t exec, cudaGraphNode_t node,
                                 const CUDA_MEMCPY3D *copy)
{
    CUcontext context;
    cudaError_t error = simrt_context_current(&context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphExecMemcpyNodeSetParams(exec, node, copy, context));
}

/* Describes a copy to (`source` is not NULL) or from (`target` is not NULL) a part of a device
 * variable. */
static cudaError_t symbol_copy(const void *symbol, void *target, const void *source, size_t size,
                               size_t offset, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *ret_copy)
{
    char *part;
    cudaError_t error = simrt_variable_part(symbol, offset, size, &part);

    if (error != cudaSuccess) {
        return error;
    }
    return source != NULL ? simrt_copy_1d(part, source, size, kind, ret_copy)
                          : simrt_copy_1d(target, part, size, kind, ret_copy);
}

SIMRT_API(cudaGraphAddMemcpyNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, const struct cudaMemcpy3DParms *parms),
          (ret_node, graph, dependencies, count, parms))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d(parms, &copy);

    return error != cudaSuccess ? error : add_copy(ret_node, graph, dependencies, count, &copy);
}

SIMRT_API(cudaGraphAddMemcpyNode1D, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, void *target, const void *source, size_t size, enum cudaMemcpyKind kind),
          (ret_node, graph, dependencies, count, target, source, size, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_1d(target, source, size, kind, &copy);

    return error != cudaSuccess ? error : add_copy(ret_node, graph, dependencies, count, &copy);
}

SIMRT_API(cudaGraphAddMemcpyNodeToSymbol, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, const void *symbol, const void *source, size_t size, size_t offset,
           enum cudaMemcpyKind kind),
          (ret_node, graph, dependencies, count, symbol, source, size, offset, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = symbol_copy(symbol, NULL, source, size, offset, kind, &copy);

    return error != cudaSuccess ? error : add_copy(ret_node, graph, dependencies, count, &copy);
}

SIMRT_API(cudaGraphAddMemcpyNodeFromSymbol, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, void *target, const void *symbol, size_t size, size_t offset,
           enum cudaMemcpyKind kind),
          (ret_node, graph, dependencies, count, target, symbol, size, offset, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = symbol_copy(symbol, target, NULL, size, offset, kind, &copy);

    return error != cudaSuccess ? error : add_copy(ret_node, graph, dependencies, count, &copy);
}

SIMRT_API(cudaGraphMemcpyNodeGetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, struct cudaMemcpy3DParms *ret_parms), (node, ret_parms))
{
    CUDA_MEMCPY3D copy;

    if (ret_parms == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = simrt_driver.cuGraphMemcpyNodeGetParams(node, &copy);
    if (result == CUDA_SUCCESS) {
        simrt_copy_3d_parms(&copy, ret_parms);
    }
    return simrt_error(result);
}

SIMRT_API(cudaGraphMemcpyNodeSetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, const struct cudaMemcpy3DParms *parms), (node, parms))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d(parms, &copy);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphMemcpyNodeSetParams(node, &copy));
}

SIMRT_API(cudaGraphMemcpyNodeSetParams1D, SIMRT_CONTEXT,
          (cudaGraphNode_t node, void *target, const void *source, size_t size,
           enum cudaMemcpyKind kind),
          (node, target, source, size, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_1d(target, source, size, kind, &copy);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphMemcpyNodeSetParams(node, &copy));
}

SIMRT_API(cudaGraphMemcpyNodeSetParamsToSymbol, SIMRT_CONTEXT,
          (cudaGraphNode_t node, const void *symbol, const void *source, size_t size, size_t offset,
           enum cudaMemcpyKind kind),
          (node, symbol, source, size, offset, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = symbol_copy(symbol, NULL, source, size, offset, kind, &copy);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphMemcpyNodeSetParams(node, &copy));
}

SIMRT_API(cudaGraphMemcpyNodeSetParamsFromSymbol, SIMRT_CONTEXT,
          (cudaGraphNode_t node, void *target, const void *symbol, size_t size, size_t offset,
           enum cudaMemcpyKind kind),
          (node, target, symbol, size, offset, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = symbol_copy(symbol, target, NULL, size, offset, kind, &copy);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphMemcpyNodeSetParams(node, &copy));
}

SIMRT_API(cudaGraphExecMemcpyNodeSetParams, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *parms),
          (exec, node, parms))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_3d(parms, &copy);

    return error != cudaSuccess ? error : set_exec_copy(exec, node, &copy);
}

SIMRT_API(cudaGraphExecMemcpyNodeSetParams1D, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, void *target, const void *source,
           size_t size, enum cudaMemcpyKind kind),
          (exec, node, target, source, size, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = simrt_copy_1d(target, source, size, kind, &copy);

    return error != cudaSuccess ? error : set_exec_copy(exec, node, &copy);
}

SIMRT_API(cudaGraphExecMemcpyNodeSetParamsToSymbol, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol, const void *source,
           size_t size, size_t offset, enum cudaMemcpyKind kind),
          (exec, node, symbol, source, size, offset, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = symbol_copy(symbol, NULL, source, size, offset, kind, &copy);

    return error != cudaSuccess ? error : set_exec_copy(exec, node, &copy);
}

SIMRT_API(cudaGraphExecMemcpyNodeSetParamsFromSymbol, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, void *target, const void *symbol,
           size_t size, size_t offset, enum cudaMemcpyKind kind),
          (exec, node, target, symbol, size, offset, kind))
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = symbol_copy(symbol, target, NULL, size, offset, kind, &copy);

    return error != cudaSuccess ? error : set_exec_copy(exec, node, &copy);
}

SIMRT_API(cudaGraphAddMemsetNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, const struct cudaMemsetParams *params),
          (ret_node, graph, dependencies, count, params))
{
    CUcontext context;
    cudaError_t error = simrt_context_current(&context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphAddMemsetNode(
        ret_node, graph, dependencies, count, (const CUDA_MEMSET_NODE_PARAMS *)params, context));
}

SIMRT_API(cudaGraphExecMemsetNodeSetParams, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *params),
          (exec, node, params))
{
    CUcontext context;
    cudaError_t error = simrt_context_current(&context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuGraphExecMemsetNodeSetParams(
        exec, node, (const CUDA_MEMSET_NODE_PARAMS *)params, context));
}
