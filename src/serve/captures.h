/* Stream captures: counted from just before they begin until they end. The entries call these
 * functions around the real ones (intercept/gen_entries.py). Locking: spw_locks.captures, inside.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* Counts a capture that is about to begin. Returns its number; SPW_STREAM_ALL when the stream is
 * being captured already. */
uint64_t spw_serve_capture_begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode);

/* Ends the count of that capture if the real call did not begin it. */
void spw_serve_capture_begun(uint64_t id, CUresult result);

/* Notes the end of a capture: after success, or after an error if the stream does not capture any
 * more. An invalidated capture ends although the call fails; another thread's capture goes on. */
void spw_serve_capture_ended(CUstream handle, bool per_thread, const CUgraph *graph,
                             CUresult result);
