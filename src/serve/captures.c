#include "serve/captures.h"

#include "graph/capture.h"
#include "graph/graph.h"
#include "program/stream.h"

uint64_t spw_serve_capture_begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode)
{
    const struct spw_stream_info *info = spw_program_stream_get(handle, per_thread);
    uint64_t id = info != NULL ? info->stream.id : spw_graph_capture_unknown(handle);

    return spw_graph_capture_begin(id, mode) ? id : SPW_STREAM_ALL;
}

void spw_serve_capture_begun(uint64_t id, CUresult result)
{
    if (id != SPW_STREAM_ALL && result != CUDA_SUCCESS) {
        spw_graph_capture_end(id);
    }
}

void spw_serve_capture_ended(CUstream handle, bool per_thread, const CUgraph *graph,
                             CUresult result)
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
        /* Ends the capture under both numbers, because the stream may have become known or unknown
         * in the meantime. */
        spw_graph_capture_end(spw_graph_capture_unknown(handle));
        if (known != NULL) {
            spw_graph_capture_end(known->stream.id);
        }
    }
}
