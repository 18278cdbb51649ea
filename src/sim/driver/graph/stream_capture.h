/* Stream capture: work given to a capturing stream becomes nodes of a graph instead of running.
 *
 * A capture begins in one stream. A stream that waits for an event of the capture joins the
 * capture, and must be joined back before the capture ends. A call that cuda.h forbids during a
 * capture invalidates the capture. An invalidated capture can only be ended.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "sim/driver/exec/event.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/exec/stream.h"
#include "sim/driver/graph/graph.h"

/* Begins a capture in the stream. The capture adds nodes to a new graph, or to `graph` behind the
 * nodes `after`. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED for a legacy stream,
 * CUDA_ERROR_ILLEGAL_STATE for a stream that is already capturing or a graph that another capture
 * already adds to, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_capture_begin(struct sim_stream *stream, struct sim_graph *graph,
                           struct sim_node *const *after, size_t after_count,
                           CUstreamCaptureMode mode);

/* Ends the capture that began in the stream. On a failure, *ret_graph is set to NULL. A failure
 * also ends the capture, unless the capture began in another stream or must be ended by another
 * thread. The caller owns the graph, unless the graph was passed to sim_capture_begin(). */
CUresult sim_capture_end(struct sim_stream *stream, struct sim_graph **ret_graph);

/* The capture state of the stream. Returns CUDA_ERROR_STREAM_CAPTURE_IMPLICIT when
 * sim_capture_admit() does, but does not invalidate a capture. */
CUresult sim_capture_status(const struct sim_stream *stream, CUstreamCaptureStatus *ret_status);

/* The capture's id and the graph under construction, for a capturing stream. */
unsigned long long sim_capture_id(const struct sim_stream *stream);
struct sim_graph *sim_capture_graph(const struct sim_stream *stream);

/* Set, or extend, the nodes that the next node of a capturing stream depends on.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_capture_set_tail(struct sim_stream *stream, struct sim_node *const *nodes,
                              size_t count);
CUresult sim_capture_extend_tail(struct sim_stream *stream, struct sim_node *const *nodes,
                                 size_t count);

/* CUDA_SUCCESS if work may be submitted to the stream now. CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for a
 * legacy stream while a stream that the legacy stream synchronises with is capturing; the capture
 * of the other stream is then invalidated. CUDA_ERROR_STREAM_CAPTURE_INVALIDATED for an invalidated
 * capture. */
CUresult sim_capture_admit(struct sim_stream *stream);

/* CUDA_SUCCESS if the stream may be queried or waited for now. If the stream is capturing,
 * invalidates its capture and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. Otherwise returns the
 * errors of sim_capture_admit() and sim_capture_unsafe(). */
CUresult sim_capture_forbids_sync(struct sim_stream *stream);

/* CUDA_SUCCESS if the event may be queried or waited for. If it was recorded in a capture,
 * invalidates that capture and returns CUDA_ERROR_CAPTURED_EVENT. Otherwise returns the result of
 * sim_capture_unsafe(). */
CUresult sim_capture_forbids_event(struct sim_event *event);

/* For calls that cannot be captured: invalidate the capture of the stream or event and return
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult sim_capture_refuse(struct sim_stream *stream);
CUresult sim_capture_refuse_event(struct sim_event *event);

/* Adds a node for the operation behind the capturing stream's last nodes. The node takes its own
 * reference to the operation. `ret_node` may be NULL. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_capture_add(struct sim_stream *stream, struct sim_op *op, struct sim_node **ret_node);

/* Records the event behind the capturing stream's last nodes. */
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event);

/* Makes the stream wait for the event; at least one of them must be part of a capture. A stream
 * that is not capturing joins the event's capture. */
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event);

/* Must be called when a stream ends. Invalidates the stream's capture and removes the stream from
 * the capture. If the capture began in this stream, the capture ends. */
void sim_capture_leave(struct sim_stream *stream);

/* Must be called by functions that wait for a whole context. If streams of the context are
 * capturing, invalidates their captures and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult sim_capture_forbids_context(CUcontext ctx);

/* Must be called by potentially unsafe functions (cuda.h, cuThreadExchangeStreamCaptureMode). If a
 * capture forbids such functions to the calling thread, invalidates this capture and returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult sim_capture_unsafe(void);

/* Sets the calling thread's capture mode and returns the previous one. */
CUstreamCaptureMode sim_capture_exchange_mode(CUstreamCaptureMode mode);
