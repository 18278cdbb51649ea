/* Open stream captures.
 *
 * driver->captures_open counts them. While it is 0, an allocation does not ask the driver for its
 * stream's capture status. A capture is counted before the real call begins it, so that none of our
 * own calls is captured.
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

/* Sets *ret_capturing to true if work for the stream would be captured. An error of the driver
 * means that the stream must not be used while another one is captured; the program gets that
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

/* A number for the capture of an unknown stream, by its handle; no known stream has that number. */
static inline uint64_t spw_graph_capture_unknown(CUstream handle)
{
    return UINT64_C(1) << 62 | (uintptr_t)handle;
}

/* The slow path of spw_graph_capture_forbids. */
bool spw_graph_capture_forbids_this_thread(void);

/* True when an open capture forbids potentially unsafe calls, such as cuMemAlloc, on the calling
 * thread (cuda.h: cuThreadExchangeStreamCaptureMode). The driver would refuse the call and
 * invalidate the capture. */
static inline bool spw_graph_capture_forbids(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_process_driver()->captures_open,
                                             memory_order_relaxed) > 0) &&
           spw_graph_capture_forbids_this_thread();
}

/* Counts a capture of stream `id`, which the calling thread is about to begin in `mode`. False when
 * the stream is already being captured. */
bool spw_graph_capture_begin(uint64_t id, CUstreamCaptureMode mode);

/* Called when a capture of stream `id`, or the stream itself, has ended: stops counting the
 * capture, if one is open. */
void spw_graph_capture_end(uint64_t id);

/* In a child after fork: no capture is open. */
void spw_graph_capture_reset(void);
