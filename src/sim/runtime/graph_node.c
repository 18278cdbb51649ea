/* Graph nodes: their place in the graph, and the kinds with the driver's layout of parameters. */
#include "sim/runtime/graph_node.h"

#include <stddef.h>

#include "sim/runtime/entry.h"

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS),
               "parameters of host nodes are the same");
_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
               "parameters of allocating nodes are the same");

cudaError_t simrt_node_context(CUcontext *ret_context)
{
    return simrt_error(simrt_driver.cuCtxGetCurrent(ret_context));
}

SIMRT_API(cudaGraphNodeFindInClone, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraphNode_t original, cudaGraph_t clone),
          (ret_node, original, clone))
{
    return simrt_error(simrt_driver.cuGraphNodeFindInClone(ret_node, original, clone));
}

SIMRT_API(cudaGraphNodeGetType, SIMRT_CONTEXT,
          (cudaGraphNode_t node, enum cudaGraphNodeType *ret_type), (node, ret_type))
{
    return simrt_error(simrt_driver.cuGraphNodeGetType(node, (CUgraphNodeType *)ret_type));
}

SIMRT_API(cudaGraphNodeGetDependencies, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaGraphNode_t *ret_nodes, cudaGraphEdgeData *ret_edges,
           size_t *inout_count),
          (node, ret_nodes, ret_edges, inout_count))
{
    return simrt_error(simrt_driver.cuGraphNodeGetDependencies(
        node, ret_nodes, (CUgraphEdgeData *)ret_edges, inout_count));
}

SIMRT_API(cudaGraphNodeGetDependentNodes, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaGraphNode_t *ret_nodes, cudaGraphEdgeData *ret_edges,
           size_t *inout_count),
          (node, ret_nodes, ret_edges, inout_count))
{
    return simrt_error(simrt_driver.cuGraphNodeGetDependentNodes(
        node, ret_nodes, (CUgraphEdgeData *)ret_edges, inout_count));
}

SIMRT_API(cudaGraphDestroyNode, SIMRT_CONTEXT, (cudaGraphNode_t node), (node))
{
    return simrt_error(simrt_driver.cuGraphDestroyNode(node));
}

SIMRT_API(cudaGraphAddEmptyNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count),
          (ret_node, graph, dependencies, count))
{
    return simrt_error(simrt_driver.cuGraphAddEmptyNode(ret_node, graph, dependencies, count));
}

SIMRT_API(cudaGraphAddChildGraphNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, cudaGraph_t child),
          (ret_node, graph, dependencies, count, child))
{
    return simrt_error(
        simrt_driver.cuGraphAddChildGraphNode(ret_node, graph, dependencies, count, child));
}

SIMRT_API(cudaGraphChildGraphNodeGetGraph, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaGraph_t *ret_graph), (node, ret_graph))
{
    return simrt_error(simrt_driver.cuGraphChildGraphNodeGetGraph(node, ret_graph));
}

SIMRT_API(cudaGraphExecChildGraphNodeSetParams, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child), (exec, node, child))
{
    return simrt_error(simrt_driver.cuGraphExecChildGraphNodeSetParams(exec, node, child));
}

SIMRT_API(cudaGraphAddHostNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, const struct cudaHostNodeParams *params),
          (ret_node, graph, dependencies, count, params))
{
    return simrt_error(simrt_driver.cuGraphAddHostNode(ret_node, graph, dependencies, count,
                                                       (const CUDA_HOST_NODE_PARAMS *)params));
}

SIMRT_API(cudaGraphHostNodeGetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, struct cudaHostNodeParams *ret_params), (node, ret_params))
{
    return simrt_error(
        simrt_driver.cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)ret_params));
}

SIMRT_API(cudaGraphHostNodeSetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, const struct cudaHostNodeParams *params), (node, params))
{
    return simrt_error(
        simrt_driver.cuGraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *)params));
}

SIMRT_API(cudaGraphExecHostNodeSetParams, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *params),
          (exec, node, params))
{
    return simrt_error(simrt_driver.cuGraphExecHostNodeSetParams(
        exec, node, (const CUDA_HOST_NODE_PARAMS *)params));
}

SIMRT_API(cudaGraphAddEventRecordNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, cudaEvent_t event),
          (ret_node, graph, dependencies, count, event))
{
    return simrt_error(
        simrt_driver.cuGraphAddEventRecordNode(ret_node, graph, dependencies, count, event));
}

SIMRT_API(cudaGraphEventRecordNodeGetEvent, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaEvent_t *ret_event), (node, ret_event))
{
    return simrt_error(simrt_driver.cuGraphEventRecordNodeGetEvent(node, ret_event));
}

SIMRT_API(cudaGraphEventRecordNodeSetEvent, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaEvent_t event), (node, event))
{
    return simrt_error(simrt_driver.cuGraphEventRecordNodeSetEvent(node, event));
}

SIMRT_API(cudaGraphExecEventRecordNodeSetEvent, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event), (exec, node, event))
{
    return simrt_error(simrt_driver.cuGraphExecEventRecordNodeSetEvent(exec, node, event));
}

SIMRT_API(cudaGraphAddEventWaitNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, cudaEvent_t event),
          (ret_node, graph, dependencies, count, event))
{
    return simrt_error(
        simrt_driver.cuGraphAddEventWaitNode(ret_node, graph, dependencies, count, event));
}

SIMRT_API(cudaGraphEventWaitNodeGetEvent, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaEvent_t *ret_event), (node, ret_event))
{
    return simrt_error(simrt_driver.cuGraphEventWaitNodeGetEvent(node, ret_event));
}

SIMRT_API(cudaGraphEventWaitNodeSetEvent, SIMRT_CONTEXT, (cudaGraphNode_t node, cudaEvent_t event),
          (node, event))
{
    return simrt_error(simrt_driver.cuGraphEventWaitNodeSetEvent(node, event));
}

SIMRT_API(cudaGraphExecEventWaitNodeSetEvent, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event), (exec, node, event))
{
    return simrt_error(simrt_driver.cuGraphExecEventWaitNodeSetEvent(exec, node, event));
}

SIMRT_API(cudaGraphAddMemAllocNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, struct cudaMemAllocNodeParams *inout_params),
          (ret_node, graph, dependencies, count, inout_params))
{
    return simrt_error(simrt_driver.cuGraphAddMemAllocNode(
        ret_node, graph, dependencies, count, (CUDA_MEM_ALLOC_NODE_PARAMS *)inout_params));
}

SIMRT_API(cudaGraphMemAllocNodeGetParams, SIMRT_CONTEXT,
          (cudaGraphNode_t node, struct cudaMemAllocNodeParams *ret_params), (node, ret_params))
{
    return simrt_error(
        simrt_driver.cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)ret_params));
}

SIMRT_API(cudaGraphAddMemFreeNode, SIMRT_CONTEXT,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, void *address),
          (ret_node, graph, dependencies, count, address))
{
    return simrt_error(simrt_driver.cuGraphAddMemFreeNode(ret_node, graph, dependencies, count,
                                                          (CUdeviceptr)address));
}

SIMRT_API(cudaGraphMemFreeNodeGetParams, SIMRT_CONTEXT, (cudaGraphNode_t node, void *ret_address),
          (node, ret_address))
{
    return simrt_error(simrt_driver.cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)ret_address));
}
