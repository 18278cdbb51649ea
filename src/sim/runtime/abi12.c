/* The older ABIs, which CUDA 12 still has under the plain names of functions (abi.h). */
#include <stdint.h>

#include "sim/runtime/entry.h"

#undef cudaStreamUpdateCaptureDependencies
#undef cudaMemAdvise
#undef cudaMemPrefetchAsync
#undef cudaGraphAddDependencies
#undef cudaGraphAddNode
#undef cudaGraphGetEdges
#undef cudaGraphNodeGetDependencies
#undef cudaGraphNodeGetDependentNodes
#undef cudaGraphRemoveDependencies

/* ---- captures and graphs, without the data of edges ---- */

SIMRT_API_PTSZ(cudaStreamGetCaptureInfo_v2, SIMRT_CONTEXT,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *ret_status,
                unsigned long long *ret_id, cudaGraph_t *ret_graph,
                const cudaGraphNode_t **ret_dependencies, size_t *ret_count))
{
    cuuint64_t id = 0;
    CUresult result = simrt_driver.cuStreamGetCaptureInfo[ptsz](
        stream, (CUstreamCaptureStatus *)ret_status, ret_id != NULL ? &id : NULL, ret_graph,
        ret_dependencies, NULL, ret_count);

    if (result == CUDA_SUCCESS && ret_id != NULL) {
        *ret_id = id;
    }
    return simrt_error(result);
}

SIMRT_API_PTSZ(cudaStreamUpdateCaptureDependencies, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count,
                unsigned int flags))
{
    return simrt_error(simrt_driver.cuStreamUpdateCaptureDependencies[ptsz](stream, dependencies,
                                                                            NULL, count, flags));
}

SIMRT_API(cudaGraphGetEdges, SIMRT_CONTEXT,
          (cudaGraph_t graph, cudaGraphNode_t *ret_from, cudaGraphNode_t *ret_to,
           size_t *inout_count))
{
    return simrt_error(simrt_driver.cuGraphGetEdges(graph, ret_from, ret_to, NULL, inout_count));
}

SIMRT_API(cudaGraphAddDependencies, SIMRT_CONTEXT,
          (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count))
{
    return simrt_error(simrt_driver.cuGraphAddDependencies(graph, from, to, NULL, count));
}

SIMRT_API(cudaGraphRemoveDependencies, SIMRT_CONTEXT,
          (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count))
{
    return simrt_error(simrt_driver.cuGraphRemoveDependencies(graph, from, to, NULL, count));
}

SIMRT_API(cudaGraphNodeGetDependencies, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaGraphNode_t *ret_nodes, size_t *inout_count))
{
    return simrt_error(simrt_driver.cuGraphNodeGetDependencies(node, ret_nodes, NULL, inout_count));
}

SIMRT_API(cudaGraphNodeGetDependentNodes, SIMRT_CONTEXT,
          (cudaGraphNode_t node, cudaGraphNode_t *ret_nodes, size_t *inout_count))
{
    return simrt_error(
        simrt_driver.cuGraphNodeGetDependentNodes(node, ret_nodes, NULL, inout_count));
}

SIMRT_API(cudaGraphAddNode, SIMRT_NOTHING,
          (cudaGraphNode_t * ret_node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           size_t count, struct cudaGraphNodeParams *inout_params))
{
    return cudaGraphAddNode_v2(ret_node, graph, dependencies, NULL, count, inout_params);
}

/* ---- a device's number in place of a location ---- */

static CUmemLocation location_of(int device)
{
    CUmemLocationType type =
        device == cudaCpuDeviceId ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;

    return (CUmemLocation){.type = type, .id = device == cudaCpuDeviceId ? 0 : device};
}

SIMRT_API(cudaMemAdvise, SIMRT_CONTEXT,
          (const void *address, size_t size, enum cudaMemoryAdvise advice, int device))
{
    return simrt_error(simrt_driver.cuMemAdvise((CUdeviceptr)address, size, (CUmem_advise)advice,
                                                location_of(device)));
}

SIMRT_API_PTSZ(cudaMemPrefetchAsync, SIMRT_CONTEXT,
               (const void *address, size_t size, int device, cudaStream_t stream))
{
    return simrt_error(simrt_driver.cuMemPrefetchAsync[ptsz]((CUdeviceptr)address, size,
                                                             location_of(device), 0, stream));
}

/* ---- batches that return the index of the failed copy ---- */

#if CUDART_VERSION >= 12080
/* Copies are checked when they run, so the index of the failed copy is unknown: SIZE_MAX. */
static cudaError_t batch_error(CUresult result, size_t *ret_failed)
{
    if (result != CUDA_SUCCESS && ret_failed != NULL) {
        *ret_failed = SIZE_MAX;
    }
    return simrt_error(result);
}

SIMRT_API_PTSZ(cudaMemcpyBatchAsync, SIMRT_CONTEXT,
               (void **targets, void **sources, size_t *sizes, size_t count,
                struct cudaMemcpyAttributes *attributes, size_t *attribute_indices,
                size_t attribute_count, size_t *ret_failed, cudaStream_t stream))
{
    CUresult result = simrt_driver.cuMemcpyBatchAsync[ptsz](
        (CUdeviceptr *)targets, (CUdeviceptr *)sources, sizes, count,
        (CUmemcpyAttributes *)attributes, attribute_indices, attribute_count, stream);

    return batch_error(result, ret_failed);
}

SIMRT_API_PTSZ(cudaMemcpy3DBatchAsync, SIMRT_CONTEXT,
               (size_t count, struct cudaMemcpy3DBatchOp *operations, size_t *ret_failed,
                unsigned long long flags, cudaStream_t stream))
{
    CUresult result = simrt_driver.cuMemcpy3DBatchAsync[ptsz](
        count, (CUDA_MEMCPY3D_BATCH_OP *)operations, flags, stream);

    return batch_error(result, ret_failed);
}
#endif
