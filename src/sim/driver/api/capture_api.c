/* Exported functions of stream capture. */
#include "sim/driver/graph/stream_capture.h"

#include <stdlib.h>

#include "sim/driver/api/entry.h"

static CUresult begin(bool ptsz, CUstream hStream, CUstreamCaptureMode mode)
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_capture_begin(stream, NULL, NULL, 0, mode);
}

SIM_API_PTSZ(cuStreamBeginCapture, SIM_CONTEXT, (CUstream hStream))
{
    return begin(ptsz, hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

SIM_API_PTSZ(cuStreamBeginCapture_v2, SIM_CONTEXT, (CUstream hStream, CUstreamCaptureMode mode))
{
    return begin(ptsz, hStream, mode);
}

SIM_API_PTSZ(cuStreamBeginCaptureToGraph, SIM_CONTEXT,
             (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
              const CUgraphEdgeData *dependencyData, size_t numDependencies,
              CUstreamCaptureMode mode))
{
    struct sim_graph *graph = sim_graph_of(hGraph);
    struct sim_stream *stream;
    struct sim_node **nodes;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (graph == NULL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_nodes_of(dependencies, numDependencies, graph, &nodes);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_capture_begin(stream, graph, nodes, numDependencies, mode);
    free(nodes);
    return result;
}

SIM_API_PTSZ(cuStreamEndCapture, SIM_CONTEXT, (CUstream hStream, CUgraph *phGraph))
{
    struct sim_graph *graph;
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (phGraph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_end(stream, &graph);
    /* cuda.h: a capture that was invalidated returns a NULL graph. */
    *phGraph = graph == NULL ? NULL : graph->handle;
    return result;
}

SIM_API_PTSZ(cuStreamIsCapturing, SIM_HEALTHY,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (captureStatus == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_capture_status(stream, captureStatus);
}

/* Creates the array stream->tail_handles with the handles of the nodes in stream->tail. */
static CUresult tail_handles(struct sim_stream *stream)
{
    CUgraphNode *handles = malloc((stream->tail_count + 1) * sizeof(CUgraphNode));

    if (handles == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < stream->tail_count; i++) {
        handles[i] = stream->tail[i]->handle;
    }
    free(stream->tail_handles);
    stream->tail_handles = handles;
    return CUDA_SUCCESS;
}

static CUresult get_info(bool ptsz, CUstream hStream, CUstreamCaptureStatus *ret_status,
                         cuuint64_t *ret_id, CUgraph *ret_graph,
                         const CUgraphNode **ret_dependencies, size_t *ret_count)
{
    CUstreamCaptureStatus status;
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result == CUDA_SUCCESS) {
        result =
            ret_status == NULL ? CUDA_ERROR_INVALID_VALUE : sim_capture_status(stream, &status);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (ret_dependencies != NULL) {
            result = tail_handles(stream);
            if (result != CUDA_SUCCESS) {
                return result;
            }
            *ret_dependencies = stream->tail_handles;
        }
        if (ret_id != NULL) {
            *ret_id = sim_capture_id(stream);
        }
        if (ret_graph != NULL) {
            *ret_graph = sim_capture_graph(stream)->handle;
        }
        if (ret_count != NULL) {
            *ret_count = stream->tail_count;
        }
    }
    *ret_status = status;
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetCaptureInfo, SIM_HEALTHY,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out))
{
    return get_info(ptsz, hStream, captureStatus_out, id_out, NULL, NULL, NULL);
}

SIM_API_PTSZ(cuStreamGetCaptureInfo_v2, SIM_HEALTHY,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
              CUgraph *graph_out, const CUgraphNode **dependencies_out,
              size_t *numDependencies_out))
{
    return get_info(ptsz, hStream, captureStatus_out, id_out, graph_out, dependencies_out,
                    numDependencies_out);
}

/* Edge data is not stored: all edges are plain, so NULL is returned. */
SIM_API_PTSZ(cuStreamGetCaptureInfo_v3, SIM_HEALTHY,
             (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
              CUgraph *graph_out, const CUgraphNode **dependencies_out,
              const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out))
{
    CUresult result;

    if (edgeData_out != NULL && dependencies_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = get_info(ptsz, hStream, captureStatus_out, id_out, graph_out, dependencies_out,
                      numDependencies_out);
    if (result == CUDA_SUCCESS && edgeData_out != NULL) {
        *edgeData_out = NULL;
    }
    return result;
}

static CUresult update_dependencies(bool ptsz, CUstream hStream, CUgraphNode *dependencies,
                                    size_t numDependencies, unsigned int flags)
{
    struct sim_stream *stream;
    struct sim_node **nodes;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_admit(stream);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (!sim_stream_is_capturing(stream)) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_nodes_of(dependencies, numDependencies, sim_capture_graph(stream), &nodes);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES
                 ? sim_capture_set_tail(stream, nodes, numDependencies)
                 : sim_capture_extend_tail(stream, nodes, numDependencies);
    free(nodes);
    return result;
}

SIM_API_PTSZ(cuStreamUpdateCaptureDependencies, SIM_HEALTHY,
             (CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
              unsigned int flags))
{
    return update_dependencies(ptsz, hStream, dependencies, numDependencies, flags);
}

SIM_API_PTSZ(cuStreamUpdateCaptureDependencies_v2, SIM_HEALTHY,
             (CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
              size_t numDependencies, unsigned int flags))
{
    return update_dependencies(ptsz, hStream, dependencies, numDependencies, flags);
}

SIM_API(cuThreadExchangeStreamCaptureMode, SIM_INITIALIZED, (CUstreamCaptureMode * mode))
{
    if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = sim_capture_exchange_mode(*mode);
    return CUDA_SUCCESS;
}
