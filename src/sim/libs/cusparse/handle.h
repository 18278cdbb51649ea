/* Handles of the simulated cuSPARSE.
 *
 * The sizes of workspaces are not documented. All here are 0, the least there can be, until they
 * are calibrated on GPUs.
 *
 * Locking: as the library documents, a handle is used by one thread at a time. */
#pragma once

#include <cusparse.h>

#include "sim/libs/common/matrix.h"

struct cusparseContext {
    CUstream stream;
    cusparsePointerMode_t pointer_mode;
};

/* Names alpha or beta, which is in device memory if the pointer mode says so. */
void sim_cusparse_add_scalar(cusparseHandle_t handle, struct sim_shim_work *work,
                             const void *scalar, cudaDataType type);

/* Launches the work on the handle's stream. */
cusparseStatus_t sim_cusparse_launch(cusparseHandle_t handle, const char *kernel,
                                     const struct sim_shim_work *work);
