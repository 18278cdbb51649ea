/* Copies and memsets that cross from memory of a device to memory of the host at adjacent device
 * addresses. What drivers do with them is not documented; SPILLWAY_SIM_CROSSING chooses it.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/exec/op.h"

/* To be called before an operation is submitted or run. CUDA_ERROR_INVALID_VALUE if the option
 * refuses crossing and memory that the operation names crosses. */
CUresult sim_crossing_check(const struct sim_op *op);

/* To be called after an operation has run. If the option asks for wrong bytes and memory that the
 * operation names crosses, changes the byte at `last`, which the operation has written. */
void sim_crossing_spoil(const struct sim_op *op, CUdeviceptr last);
