/* Stream captures. Each is counted from just before it begins until it ends. The entries call these
 * functions around the real ones (intercept/gen_entries.py). Locking: takes spw_locks.captures. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* Counts a capture that is about to begin. Returns its number; SPW_STREAM_ALL if the stream is
 * already being captured. */
uint64_t spw_serve_capture_begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode);

/* Ends the count of this capture if the real call did not begin it. */
void spw_serve_capture_begun(uint64_t id, CUresult result);

/* Records the end of a capture, if the real call succeeded, or if it failed and the stream is no
 * longer capturing. The call fails and yet ends the capture if the capture was invalidated. It
 * fails and leaves the capture open if the capture belongs to another thread. */
void spw_serve_capture_ended(CUstream handle, bool per_thread, const CUgraph *graph,
                             CUresult result);
