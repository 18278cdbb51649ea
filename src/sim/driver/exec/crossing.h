/* Copies and memsets that cross from memory of a device to memory of the host, at neighbouring
 * device addresses. What a driver does with one is not documented: SPILLWAY_SIM_CROSSING.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/exec/op.h"

/* Checks an operation that is about to be submitted, or run: CUDA_ERROR_INVALID_VALUE if memory
 * that it names crosses and that is refused. */
CUresult sim_crossing_check(const struct sim_op *op);

/* An operation has run: if its memory crosses and the bytes are to be wrong, the byte at `last`,
 * which it has written, is changed. */
void sim_crossing_spoil(const struct sim_op *op, CUdeviceptr last);
