/* Capture of streams into graphs. */
#include <stddef.h>

#include "sim/runtime/entry.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edge data are the same");

SIMRT_API_PTSZ(cudaStreamBeginCapture, SIMRT_CONTEXT,
               (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode))
{
    return simrt_error(simrt_driver.cuStreamBeginCapture[ptsz](stream, (CUstreamCaptureMode)mode));
}

SIMRT_API_PTSZ(cudaStreamBeginCaptureToGraph, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
               (stream, graph, dependencies, edges, count, mode))
{
    return simrt_error(simrt_driver.cuStreamBeginCaptureToGraph[ptsz](
        stream, graph, dependencies, (const CUgraphEdgeData *)edges, count,
        (CUstreamCaptureMode)mode));
}

SIMRT_API_PTSZ(cudaStreamEndCapture, SIMRT_CONTEXT, (cudaStream_t stream, cudaGraph_t *ret_graph),
               (stream, ret_graph))
{
    return simrt_error(simrt_driver.cuStreamEndCapture[ptsz](stream, ret_graph));
}

SIMRT_API_PTSZ(cudaStreamIsCapturing, SIMRT_CONTEXT,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *ret_status),
               (stream, ret_status))
{
    return simrt_error(
        simrt_driver.cuStreamIsCapturing[ptsz](stream, (CUstreamCaptureStatus *)ret_status));
}

SIMRT_API_PTSZ(cudaStreamGetCaptureInfo, SIMRT_CONTEXT,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *ret_status,
                unsigned long long *ret_id, cudaGraph_t *ret_graph,
                const cudaGraphNode_t **ret_dependencies, const cudaGraphEdgeData **ret_edges,
                size_t *ret_count),
               (stream, ret_status, ret_id, ret_graph, ret_dependencies, ret_edges, ret_count))
{
    cuuint64_t id = 0;
    CUresult result = simrt_driver.cuStreamGetCaptureInfo[ptsz](
        stream, (CUstreamCaptureStatus *)ret_status, ret_id != NULL ? &id : NULL, ret_graph,
        ret_dependencies, (const CUgraphEdgeData **)ret_edges, ret_count);

    if (result == CUDA_SUCCESS && ret_id != NULL) {
        *ret_id = id;
    }
    return simrt_error(result);
}

SIMRT_API_PTSZ(cudaStreamUpdateCaptureDependencies, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                size_t count, unsigned int flags),
               (stream, dependencies, edges, count, flags))
{
    return simrt_error(simrt_driver.cuStreamUpdateCaptureDependencies[ptsz](
        stream, dependencies, (const CUgraphEdgeData *)edges, count, flags));
}

SIMRT_API(cudaThreadExchangeStreamCaptureMode, SIMRT_DRIVER,
          (enum cudaStreamCaptureMode * inout_mode), (inout_mode))
{
    return simrt_error(
        simrt_driver.cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)inout_mode));
}
