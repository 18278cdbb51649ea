/* Handles of the simulated cuDNN, and the sizes of its element types.
 *
 * Locking: a handle is used by one thread at a time, as the library documents. */
#pragma once

#include <cudnn.h>

#include "sim/libs/common/shim.h"

struct cudnnContext {
    CUstream stream;
};

/* Bits of an element; 0 for an unknown type. */
size_t sim_cudnn_type_bits(cudnnDataType_t type);

/* Launches the work on the handle's stream. */
cudnnStatus_t sim_cudnn_launch(cudnnHandle_t handle, const char *kernel,
                               const struct sim_shim_work *work);
