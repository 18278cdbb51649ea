/* Counts of calls, the log of calls (SPILLWAY_SIM_LOG), and injected failures (SPILLWAY_SIM_FAIL).
 * Tests use them through control.h.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/functions.h"

/* Counts a call. Returns the error that SPILLWAY_SIM_FAIL injects into it, or CUDA_SUCCESS. */
CUresult sim_calls_begin(enum sim_fn fn);

/* Counts the chunks that the call covers, and their bytes. */
void sim_calls_count_chunks(enum sim_fn fn, uint64_t chunks, uint64_t bytes);

/* Writes the call's line to the log, if there is one. */
void sim_calls_end(enum sim_fn fn, CUresult result);

/* True if calls are logged; callers then collect details. */
bool sim_calls_logged(void);

/* Writes `line` to the log, if there is one. */
void sim_calls_log(const char *line);

/* Adds a detail to the log line of the call in progress on this thread ("va=0x... size=..."). Does
 * nothing without SPILLWAY_SIM_LOG. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes one line to stderr and to the log, "spillway sim: ...". Does nothing if `once` is not NULL
 * and *once is true; otherwise sets *once. */
void sim_warn_once(bool *once, const char *format, ...) __attribute__((format(printf, 2, 3)));
