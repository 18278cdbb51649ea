/* Stream captures: counted from just before they begin until they end. */
#include "graph/capture.h"
#include "graph/graph.h"
#include "process/process.h"
#include "program/stream.h"
#include "serve/handlers.h"

/* Counts a capture that is about to begin. Returns its number; SPW_STREAM_ALL when the stream is
 * being captured already. */
static uint64_t begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode)
{
    const struct spw_stream_info *info = spw_program_stream_get(handle, per_thread);
    uint64_t id = info != NULL ? info->stream.id : spw_graph_capture_unknown(handle);

    return spw_graph_capture_begin(id, mode) ? id : SPW_STREAM_ALL;
}

/* Ends the count of a capture that the real call did not begin. */
static CUresult begun(uint64_t id, CUresult result)
{
    if (id != SPW_STREAM_ALL && result != CUDA_SUCCESS) {
        spw_graph_capture_end(id);
    }
    return result;
}

CUresult spw_serve_cuStreamBeginCapture(CUstream stream)
{
    uint64_t id = begin(stream, /* per_thread */ false, CU_STREAM_CAPTURE_MODE_GLOBAL);

    return begun(id, spw_process_driver()->cuStreamBeginCapture(stream));
}

CUresult spw_serve_cuStreamBeginCapture_ptsz(CUstream stream)
{
    uint64_t id = begin(stream, /* per_thread */ true, CU_STREAM_CAPTURE_MODE_GLOBAL);

    return begun(id, spw_process_driver()->cuStreamBeginCapture_ptsz(stream));
}

CUresult spw_serve_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    uint64_t id = begin(stream, /* per_thread */ false, mode);

    return begun(id, spw_process_driver()->cuStreamBeginCapture_v2(stream, mode));
}

CUresult spw_serve_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
    uint64_t id = begin(stream, /* per_thread */ true, mode);

    return begun(id, spw_process_driver()->cuStreamBeginCapture_v2_ptsz(stream, mode));
}

CUresult spw_serve_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                               const CUgraphNode *dependencies,
                                               const CUgraphEdgeData *data, size_t count,
                                               CUstreamCaptureMode mode)
{
    uint64_t id = begin(stream, /* per_thread */ false, mode);

    return begun(id, spw_process_driver()->cuStreamBeginCaptureToGraph(stream, graph, dependencies,
                                                                       data, count, mode));
}

CUresult spw_serve_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                    const CUgraphNode *dependencies,
                                                    const CUgraphEdgeData *data, size_t count,
                                                    CUstreamCaptureMode mode)
{
    uint64_t id = begin(stream, /* per_thread */ true, mode);

    return begun(id, spw_process_driver()->cuStreamBeginCaptureToGraph_ptsz(
                         stream, graph, dependencies, data, count, mode));
}

/* Notes the end of a capture: after success, or after an error if the stream does not capture any
 * more. An invalidated capture ends although the call fails; another thread's capture goes on. */
static CUresult ended(CUstream handle, bool per_thread, const CUgraph *graph, CUresult result)
{
    const struct spw_stream_info *known = spw_program_stream_get(handle, per_thread);
    const struct spw_stream_info unknown = {.stream = {.handle = handle}, .ordinal = -1};
    bool capturing = false;

    if (result == CUDA_SUCCESS && graph != NULL && *graph != NULL) {
        spw_graph_captured(*graph);
    }
    if (result == CUDA_SUCCESS ||
        (spw_graph_capture_status(known != NULL ? known : &unknown, &capturing) == CUDA_SUCCESS &&
         !capturing)) {
        /* Ends it under both numbers, as the stream may have become known or unknown in between. */
        spw_graph_capture_end(spw_graph_capture_unknown(handle));
        if (known != NULL) {
            spw_graph_capture_end(known->stream.id);
        }
    }
    return result;
}

CUresult spw_serve_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result = spw_process_driver()->cuStreamEndCapture(stream, graph);

    return ended(stream, /* per_thread */ false, graph, result);
}

CUresult spw_serve_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    CUresult result = spw_process_driver()->cuStreamEndCapture_ptsz(stream, graph);

    return ended(stream, /* per_thread */ true, graph, result);
}
