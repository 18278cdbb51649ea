/* Graphs: structure, user objects, executable graphs, and the memory they hold. */
#include <stddef.h>

#include "sim/runtime/entry.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edge data are the same");
_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
               "parameters of instantiation are the same");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
               "results of updates are the same");

SIMRT_API(cudaGraphCreate, SIMRT_CONTEXT, (cudaGraph_t * ret_graph, unsigned int flags),
          (ret_graph, flags))
{
    return simrt_error(simrt_driver.cuGraphCreate(ret_graph, flags));
}

SIMRT_API(cudaGraphDestroy, SIMRT_CONTEXT, (cudaGraph_t graph), (graph))
{
    return simrt_error(simrt_driver.cuGraphDestroy(graph));
}

SIMRT_API(cudaGraphClone, SIMRT_CONTEXT, (cudaGraph_t * ret_clone, cudaGraph_t graph),
          (ret_clone, graph))
{
    return simrt_error(simrt_driver.cuGraphClone(ret_clone, graph));
}

SIMRT_API(cudaGraphGetNodes, SIMRT_CONTEXT,
          (cudaGraph_t graph, cudaGraphNode_t *ret_nodes, size_t *inout_count),
          (graph, ret_nodes, inout_count))
{
    return simrt_error(simrt_driver.cuGraphGetNodes(graph, ret_nodes, inout_count));
}

SIMRT_API(cudaGraphGetRootNodes, SIMRT_CONTEXT,
          (cudaGraph_t graph, cudaGraphNode_t *ret_nodes, size_t *inout_count),
          (graph, ret_nodes, inout_count))
{
    return simrt_error(simrt_driver.cuGraphGetRootNodes(graph, ret_nodes, inout_count));
}

SIMRT_API(cudaGraphGetEdges, SIMRT_CONTEXT,
          (cudaGraph_t graph, cudaGraphNode_t *ret_from, cudaGraphNode_t *ret_to,
           cudaGraphEdgeData *ret_edges, size_t *inout_count),
          (graph, ret_from, ret_to, ret_edges, inout_count))
{
    return simrt_error(simrt_driver.cuGraphGetEdges(graph, ret_from, ret_to,
                                                    (CUgraphEdgeData *)ret_edges, inout_count));
}

SIMRT_API(cudaGraphAddDependencies, SIMRT_CONTEXT,
          (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
           const cudaGraphEdgeData *edges, size_t count),
          (graph, from, to, edges, count))
{
    return simrt_error(simrt_driver.cuGraphAddDependencies(graph, from, to,
                                                           (const CUgraphEdgeData *)edges, count));
}

SIMRT_API(cudaGraphRemoveDependencies, SIMRT_CONTEXT,
          (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
           const cudaGraphEdgeData *edges, size_t count),
          (graph, from, to, edges, count))
{
    return simrt_error(simrt_driver.cuGraphRemoveDependencies(
        graph, from, to, (const CUgraphEdgeData *)edges, count));
}

SIMRT_API(cudaGraphDebugDotPrint, SIMRT_CONTEXT,
          (cudaGraph_t graph, const char *path, unsigned int flags), (graph, path, flags))
{
    return simrt_error(simrt_driver.cuGraphDebugDotPrint(graph, path, flags));
}

SIMRT_API(cudaGraphConditionalHandleCreate, SIMRT_CONTEXT,
          (cudaGraphConditionalHandle * ret_handle, cudaGraph_t graph, unsigned int launch_value,
           unsigned int flags),
          (ret_handle, graph, launch_value, flags))
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

SIMRT_API(cudaUserObjectCreate, SIMRT_DRIVER,
          (cudaUserObject_t * ret_object, void *pointer, cudaHostFn_t destroy,
           unsigned int references, unsigned int flags),
          (ret_object, pointer, destroy, references, flags))
{
    return simrt_error(
        simrt_driver.cuUserObjectCreate(ret_object, pointer, destroy, references, flags));
}

SIMRT_API(cudaUserObjectRetain, SIMRT_DRIVER, (cudaUserObject_t object, unsigned int count),
          (object, count))
{
    return simrt_error(simrt_driver.cuUserObjectRetain(object, count));
}

SIMRT_API(cudaUserObjectRelease, SIMRT_DRIVER, (cudaUserObject_t object, unsigned int count),
          (object, count))
{
    return simrt_error(simrt_driver.cuUserObjectRelease(object, count));
}

SIMRT_API(cudaGraphRetainUserObject, SIMRT_DRIVER,
          (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags),
          (graph, object, count, flags))
{
    return simrt_error(simrt_driver.cuGraphRetainUserObject(graph, object, count, flags));
}

SIMRT_API(cudaGraphReleaseUserObject, SIMRT_DRIVER,
          (cudaGraph_t graph, cudaUserObject_t object, unsigned int count), (graph, object, count))
{
    return simrt_error(simrt_driver.cuGraphReleaseUserObject(graph, object, count));
}

SIMRT_API(cudaGraphInstantiate, SIMRT_CONTEXT,
          (cudaGraphExec_t * ret_exec, cudaGraph_t graph, unsigned long long flags),
          (ret_exec, graph, flags))
{
    return simrt_error(simrt_driver.cuGraphInstantiateWithFlags(ret_exec, graph, flags));
}

SIMRT_API(cudaGraphInstantiateWithFlags, SIMRT_CONTEXT,
          (cudaGraphExec_t * ret_exec, cudaGraph_t graph, unsigned long long flags),
          (ret_exec, graph, flags))
{
    return simrt_error(simrt_driver.cuGraphInstantiateWithFlags(ret_exec, graph, flags));
}

SIMRT_API_PTSZ(cudaGraphInstantiateWithParams, SIMRT_CONTEXT,
               (cudaGraphExec_t * ret_exec, cudaGraph_t graph,
                cudaGraphInstantiateParams *inout_params),
               (ret_exec, graph, inout_params))
{
    return simrt_error(simrt_driver.cuGraphInstantiateWithParams[ptsz](
        ret_exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)inout_params));
}

SIMRT_API_PTSZ(cudaGraphUpload, SIMRT_CONTEXT, (cudaGraphExec_t exec, cudaStream_t stream),
               (exec, stream))
{
    return simrt_error(simrt_driver.cuGraphUpload[ptsz](exec, stream));
}

SIMRT_API_PTSZ(cudaGraphLaunch, SIMRT_CONTEXT, (cudaGraphExec_t exec, cudaStream_t stream),
               (exec, stream))
{
    return simrt_error(simrt_driver.cuGraphLaunch[ptsz](exec, stream));
}

SIMRT_API(cudaGraphExecDestroy, SIMRT_CONTEXT, (cudaGraphExec_t exec), (exec))
{
    return simrt_error(simrt_driver.cuGraphExecDestroy(exec));
}

SIMRT_API(cudaGraphExecGetFlags, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, unsigned long long *ret_flags), (exec, ret_flags))
{
    cuuint64_t flags;
    CUresult result = simrt_driver.cuGraphExecGetFlags(exec, &flags);

    if (result == CUDA_SUCCESS) {
        *ret_flags = flags;
    }
    return simrt_error(result);
}

SIMRT_API(cudaGraphExecUpdate, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *ret_info),
          (exec, graph, ret_info))
{
    return simrt_error(
        simrt_driver.cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)ret_info));
}

SIMRT_API(cudaGraphNodeSetEnabled, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled), (exec, node, enabled))
{
    return simrt_error(simrt_driver.cuGraphNodeSetEnabled(exec, node, enabled));
}

SIMRT_API(cudaGraphNodeGetEnabled, SIMRT_CONTEXT,
          (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *ret_enabled),
          (exec, node, ret_enabled))
{
    return simrt_error(simrt_driver.cuGraphNodeGetEnabled(exec, node, ret_enabled));
}

SIMRT_API(cudaDeviceGraphMemTrim, SIMRT_DRIVER, (int ordinal), (ordinal))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    return error != cudaSuccess ? error : simrt_error(simrt_driver.cuDeviceGraphMemTrim(device));
}

SIMRT_API(cudaDeviceGetGraphMemAttribute, SIMRT_DRIVER,
          (int ordinal, enum cudaGraphMemAttributeType attribute, void *ret_value),
          (ordinal, attribute, ret_value))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceGetGraphMemAttribute(
        device, (CUgraphMem_attribute)attribute, ret_value));
}

SIMRT_API(cudaDeviceSetGraphMemAttribute, SIMRT_DRIVER,
          (int ordinal, enum cudaGraphMemAttributeType attribute, void *value),
          (ordinal, attribute, value))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(
        simrt_driver.cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value));
}
