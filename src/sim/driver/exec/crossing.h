/* Copies and memsets that cross from memory of a device to memory of the host at adjacent device
 * addresses. NVIDIA does not document how drivers handle such an operation. SPILLWAY_SIM_CROSSING
 * chooses the behaviour.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>

#include "sim/driver/exec/op.h"

/* Must be called before an operation is submitted or run. Returns CUDA_ERROR_INVALID_VALUE if the
 * option forbids crossing and a range of the operation crosses. */
CUresult sim_crossing_check(const struct sim_op *op);

/* Must be called after an operation has run. If the option asks for wrong bytes and a range of the
 * operation crosses, changes the byte at `last`, which the operation has written. */
void sim_crossing_spoil(const struct sim_op *op, CUdeviceptr last);
