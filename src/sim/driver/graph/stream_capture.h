/* Stream capture: work given to a capturing stream becomes nodes of a graph instead of running.
 *
 * A capture begins in one stream; streams that wait for its events join it, and must be joined back
 * before it ends. A call that cuda.h forbids during a capture invalidates it: then it can only be
 * ended.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "sim/driver/exec/event.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/exec/stream.h"
#include "sim/driver/graph/graph.h"

/* Begins a capture in the stream, into a new graph, or into `graph` behind `after`.
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED for a legacy stream, CUDA_ERROR_ILLEGAL_STATE for one that
 * is capturing, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_capture_begin(struct sim_stream *stream, struct sim_graph *graph,
                           struct sim_node *const *after, size_t after_count,
                           CUstreamCaptureMode mode);

/* Ends the capture that began in the stream. On failure *ret_graph is NULL; the capture is over all
 * the same, except if this was not the stream or not the thread to end it. The graph is the
 * caller's, or still that of who gave it to sim_capture_begin(). */
CUresult sim_capture_end(struct sim_stream *stream, struct sim_graph **ret_graph);

/* The state of the stream; CUDA_ERROR_STREAM_CAPTURE_IMPLICIT as in sim_capture_admit(), but
 * nothing is invalidated. */
CUresult sim_capture_status(const struct sim_stream *stream, CUstreamCaptureStatus *ret_status);

/* The capture and the graph under construction of a capturing stream. */
unsigned long long sim_capture_id(const struct sim_stream *stream);
struct sim_graph *sim_capture_graph(const struct sim_stream *stream);

/* Replaces, or adds to, the nodes that the next node of a capturing stream depends on.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_capture_set_tail(struct sim_stream *stream, struct sim_node *const *nodes,
                              size_t count);
CUresult sim_capture_extend_tail(struct sim_stream *stream, struct sim_node *const *nodes,
                                 size_t count);

/* CUDA_SUCCESS if the stream may be given work now; CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for a legacy
 * stream while a stream that it synchronises with is capturing (which invalidates that capture), or
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. */
CUresult sim_capture_admit(struct sim_stream *stream);

/* CUDA_SUCCESS if the stream may be queried or waited for now. A capturing stream may not: its
 * capture is invalidated. Includes sim_capture_unsafe(). */
CUresult sim_capture_forbids_sync(struct sim_stream *stream);

/* CUDA_SUCCESS if the event may be queried or waited for; otherwise as above. */
CUresult sim_capture_forbids_event(struct sim_event *event);

/* Invalidates the capture of a stream, or the one an event was recorded in, and returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: for calls that cannot be captured. */
CUresult sim_capture_refuse(struct sim_stream *stream);
CUresult sim_capture_refuse_event(struct sim_event *event);

/* Adds a node for the operation behind what the capturing stream holds; takes a reference of its
 * own. `ret_node` may be NULL. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_capture_add(struct sim_stream *stream, struct sim_op *op, struct sim_node **ret_node);

/* Lets the event stand for what the capturing stream holds. */
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event);

/* Lets the stream wait for the event, where one of them is part of a capture; it may join one. */
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event);

/* Takes a stream that ends out of its capture, which is invalidated, or ended if it began there. */
void sim_capture_leave(struct sim_stream *stream);

/* For functions that wait for a whole context: if a stream of it is capturing, invalidates those
 * captures and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult sim_capture_forbids_context(CUcontext ctx);

/* For potentially unsafe functions (cuda.h, cuThreadExchangeStreamCaptureMode): if a capture
 * forbids them to the calling thread, invalidates that capture and returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult sim_capture_unsafe(void);

/* Sets the calling thread's capture mode; returns the one before. */
CUstreamCaptureMode sim_capture_exchange_mode(CUstreamCaptureMode mode);
