/* The work side as the memory side sees it: streams, the scheduler, capture.
 *
 * Owned by the work side. Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/context.h"
#include "sim/driver/device.h"

struct sim_stream;

/* Lets the virtual clock advance by so many nanoseconds; called at the begin of every API call
 * after cuInit. */
void sim_work_step(uint64_t ns);

/* Whether queued, unfinished work names part of [address, address + size). */
bool sim_work_uses(CUdeviceptr address, size_t size);

/* Runs the scheduler until all work submitted so far is done: on every context of the device, or of
 * one context. The lock may be released meanwhile. The context's sticky error if work failed. */
CUresult sim_work_drain_device(struct sim_device *device);
CUresult sim_work_drain_context(CUcontext ctx);

/* Called when a context was created (sets ctx->work) and before it goes away: what is left of its
 * streams, events and modules is finished or dropped and freed. */
CUresult sim_work_ctx_create(CUcontext ctx);
void sim_work_ctx_destroy(CUcontext ctx);

/* The stream of a handle: NULL and CU_STREAM_LEGACY are the current context's default stream, NULL
 * with `ptsz` and CU_STREAM_PER_THREAD the calling thread's. CUDA_ERROR_INVALID_HANDLE (a dead or
 * foreign handle), CUDA_ERROR_INVALID_CONTEXT (NULL without a context), or the sticky error. */
CUresult sim_stream_resolve(CUstream handle, bool ptsz, struct sim_stream **ret_stream);

/* The stream's context; its id, never used twice. */
CUcontext sim_stream_ctx(const struct sim_stream *stream);
unsigned long long sim_stream_id(const struct sim_stream *stream);

/* Whether work given to the stream is being captured now. */
bool sim_stream_is_capturing(const struct sim_stream *stream);

/* Queues `run(arg)` behind what was submitted to the stream so far; it runs with the lock held,
 * once, possibly before this returns. Also run, not dropped, when the context has failed or goes
 * away, so that it may free what `arg` owns. */
CUresult sim_work_enqueue_call(struct sim_stream *stream, void (*run)(void *arg), void *arg);

/* An allocation or a free on a capturing stream: becomes a node of the graph under construction. */
CUresult sim_capture_mem_alloc(struct sim_stream *stream, size_t size, CUdeviceptr *ret_address);
CUresult sim_capture_mem_free(struct sim_stream *stream, CUdeviceptr address);

/* cuMemFree or cuMemFreeAsync, outside of a capture, of an address that is not the memory side's:
 * frees an allocation of a graph that was launched. CUDA_ERROR_INVALID_VALUE if it is none. */
CUresult sim_graph_memory_release(CUdeviceptr address);

/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and those captures are invalidated, if a stream of the
 * context is capturing: for functions that wait for the whole context. */
CUresult sim_capture_forbids_context(CUcontext ctx);

/* Whether the calling thread is the one host functions run on, where CUDA calls are not permitted
 * (CUDA_ERROR_NOT_PERMITTED). May be called without the lock. */
bool sim_callback_is_thread(void);

/* To be called by potentially unsafe functions (cuda.h, cuThreadExchangeStreamCaptureMode): while
 * the calling thread may not make such a call because of a capture, invalidates that capture and
 * returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, else CUDA_SUCCESS. */
CUresult sim_capture_unsafe(void);
