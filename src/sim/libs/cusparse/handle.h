/* The simulated cuSPARSE. It does not know the other libraries.
 *
 *   convert       converts and sorts indices
 *   handle        handles, and workspaces of 0 bytes
 *   libcusparse   the version of the library's symbols
 *   matrix        descriptors of matrices and vectors
 *   multiply      products with a sparse matrix
 *
 * cuSPARSE does not document workspace sizes. Every size is 0 here, which is the lower bound.
 *
 * Locking: a handle is used by one thread at a time, as the library documents. */
#pragma once

#include <cusparse.h>

#include "sim/libs/common/matrix.h"

struct cusparseContext {
    CUstream stream;
    cusparsePointerMode_t pointer_mode;
};

/* If the pointer mode places scalars in device memory, adds a scalar (alpha, beta) to the work. */
void sim_cusparse_add_scalar(cusparseHandle_t handle, struct sim_shim_work *work,
                             const void *scalar, cudaDataType type);

/* Launches the work on the handle's stream. */
cusparseStatus_t sim_cusparse_launch(cusparseHandle_t handle, const char *kernel,
                                     const struct sim_shim_work *work);
