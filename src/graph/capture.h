/* Open stream captures.
 *
 * driver->captures_open is the number of open captures. While it is 0, an allocation need not ask
 * the driver for the capture status of its stream. A capture is counted before the real call begins
 * it, so that no driver call of spillway's own is captured.
 *
 * Locking: spw_locks.captures; nothing is called under this lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"
#include "process/process.h"
#include "program/stream.h"

/* The slow path of spw_graph_capture_status: asks the driver. */
CUresult spw_graph_capture_ask(const struct spw_stream_info *info, bool *ret_capturing);

/* Sets *ret_capturing to true if work for the stream would be captured. If the driver returns an
 * error, the stream must not be used while another stream is captured. The program then gets that
 * error. */
static inline CUresult spw_graph_capture_status(const struct spw_stream_info *info,
                                                bool *ret_capturing)
{
    *ret_capturing = false;
    return SPW_LIKELY(atomic_load_explicit(&spw_process_driver()->captures_open,
                                           memory_order_relaxed) == 0)
               ? CUDA_SUCCESS
               : spw_graph_capture_ask(info, ret_capturing);
}

/* Returns a number for the capture of an unknown stream, made from its handle. No known stream has
 * that number. */
static inline uint64_t spw_graph_capture_unknown(CUstream handle)
{
    return UINT64_C(1) << 62 | (uintptr_t)handle;
}

/* The slow path of spw_graph_capture_forbids. */
bool spw_graph_capture_forbids_this_thread(void);

/* Returns true if an open capture forbids potentially unsafe calls, such as cuMemAlloc, on the
 * calling thread (cuda.h: cuThreadExchangeStreamCaptureMode). The driver would refuse such a call
 * and invalidate the capture. */
static inline bool spw_graph_capture_forbids(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_process_driver()->captures_open,
                                             memory_order_relaxed) > 0) &&
           spw_graph_capture_forbids_this_thread();
}

/* Counts a capture of stream `id`, which the calling thread is about to begin in `mode`. Returns
 * false if the stream is already being captured. */
bool spw_graph_capture_begin(uint64_t id, CUstreamCaptureMode mode);

/* Removes the open capture of stream `id` from the count, if there is one. Called when the capture
 * or the stream itself has ended. */
void spw_graph_capture_end(uint64_t id);

/* In a child after fork: forgets all captures. */
void spw_graph_capture_reset(void);
