/* Submission of work to a stream: the work is queued or, while the stream is capturing, becomes a
 * graph node.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/exec/stream.h"

/* Submits the operation to the stream. The caller keeps its reference. Returns CUDA_SUCCESS,
 * CUDA_ERROR_OUT_OF_MEMORY, or the error of a capture that does not allow the operation. */
CUresult sim_submit(struct sim_stream *stream, struct sim_op *op);

/* As sim_submit(), but takes over the caller's reference, even on an error. If `op` is NULL,
 * because its creation ran out of host memory, returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_submit_new(struct sim_stream *stream, struct sim_op *op);

/* Waits for all work submitted to the stream so far. For the legacy stream, also waits for the work
 * of the streams that the legacy stream waits for. Returns the context's sticky error, if any. May
 * release the lock while it waits. */
CUresult sim_submit_wait(struct sim_stream *stream);

/* Lets the clock run until the work that sim_submit_wait() waits for is complete, or until all
 * pending items wait for the host. */
void sim_submit_expect(struct sim_stream *stream);

/* Queues `run(arg)` behind the work submitted to the stream so far; the stream must not be
 * capturing. `run` is called exactly once, with the lock held, possibly before this function
 * returns. It is also called if the context has failed or ends, so that it can free the memory that
 * `arg` owns. If this function returns an error, `run` is not called. Errors:
 * CUDA_ERROR_OUT_OF_MEMORY, or the error of a capture that does not allow the call. */
CUresult sim_submit_call(struct sim_stream *stream, void (*run)(void *arg), void *arg);
