/* What is kept about every call: how often, in the log, and whether it is to fail. Tests reach it
 * through control.h.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "sim/driver/functions.h"

/* Counts a call; the error a fault rule injects into it, or CUDA_SUCCESS. */
CUresult sim_calls_begin(enum sim_fn fn);

/* Writes the call's line to the log, if there is one. */
void sim_calls_end(enum sim_fn fn, CUresult result);

/* Whether calls are logged, so that details are worth collecting. */
bool sim_calls_logged(void);

/* Writes a line of its own to the log, if there is one. */
void sim_calls_log(const char *line);

/* The name of an error code as cuda.h spells it, or NULL. Needs no lock. */
const char *sim_error_name(CUresult code);

/* The code of a name, with or without CUDA_ERROR_, or of a number; false if there is none. */
bool sim_error_parse(const char *text, CUresult *ret_code);
