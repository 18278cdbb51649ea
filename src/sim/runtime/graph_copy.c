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

/* The functions for one form of a copy. They add a node, or replace a node's parameters in a graph
 * or in an executable graph. The expression `describe` converts the form to `copy`. */
#define COPY_NODE(suffix, describe, params)                                                        \
    SIMRT_API(cudaGraphAddMemcpyNode##suffix, SIMRT_CONTEXT,                                       \
              (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, \
               size_t count, SIMRT_LIST params))                                                   \
    {                                                                                              \
        CUDA_MEMCPY3D copy;                                                                        \
        cudaError_t error = describe;                                                              \
                                                                                                   \
        return error != cudaSuccess ? error                                                        \
                                    : add_copy(ret_node, graph, dependencies, count, &copy);       \
    }                                                                                              \
    SIMRT_API(cudaGraphMemcpyNodeSetParams##suffix, SIMRT_CONTEXT,                                 \
              (cudaGraphNode_t node, SIMRT_LIST params))                                           \
    {                                                                                              \
        CUDA_MEMCPY3D copy;                                                                        \
        cudaError_t error = describe;                                                              \
                                                                                                   \
        return error != cudaSuccess                                                                \
                   ? error                                                                         \
                   : simrt_error(simrt_driver.cuGraphMemcpyNodeSetParams(node, &copy));            \
    }                                                                                              \
    SIMRT_API(cudaGraphExecMemcpyNodeSetParams##suffix, SIMRT_CONTEXT,                             \
              (cudaGraphExec_t exec, cudaGraphNode_t node, SIMRT_LIST params))                     \
    {                                                                                              \
        CUDA_MEMCPY3D copy;                                                                        \
        cudaError_t error = describe;                                                              \
                                                                                                   \
        return error != cudaSuccess ? error : set_exec_copy(exec, node, &copy);                    \
    }

COPY_NODE(, simrt_copy_3d(parms, &copy), (const struct cudaMemcpy3DParms *parms))
COPY_NODE(1D, simrt_copy_1d(target, source, size, kind, &copy),
          (void *target, const void *source, size_t size, enum cudaMemcpyKind kind))
COPY_NODE(ToSymbol, symbol_copy(symbol, NULL, source, size, offset, kind, &copy),
          (const void *symbol, const void *source, size_t size, size_t offset,
           enum cudaMemcpyKind kind))
COPY_NODE(FromSymbol, symbol_copy(symbol, target, NULL, size, offset, kind, &copy),
          (void *target, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind))

SIMRT_API(cudaGraphMemcpyNodeGetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, struct cudaMemcpy3DParms *ret_parms))
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
