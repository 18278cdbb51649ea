/* Eigenvalues and singular values: what a problem of either kind touches.
 *
 * Locking: none needed. */
#pragma once

#include "sim/libs/cusolver/handle.h"

/* `batch` problems, one after another. */
struct sim_cusolver_spectral {
    cusolverDnHandle_t handle;
    struct sim_shim_matrix a; /* batch and stride are those of the problem */
    void *values;             /* real ones, or as wide as value_bits says */
    size_t value_bits;
    int64_t value_count;
    int64_t value_stride;
    struct sim_shim_matrix left;  /* vectors; no data: none */
    struct sim_shim_matrix right; /* likewise */
    void *area;
    size_t area_bytes;
    int *info;
};

/* Names all of it and launches. CUSOLVER_STATUS_INVALID_VALUE for a shape that makes no sense. */
cusolverStatus_t sim_cusolver_spectral_launch(const char *kernel,
                                              const struct sim_cusolver_spectral *problem);

/* Elements of the work area for the eigenvalues of a symmetric matrix, with vectors or without, as
 * LAPACK's xSYEVD documents it. */
int64_t sim_cusolver_symmetric_elements(int64_t order, bool vectors);

/* Elements of the work area for singular values, as LAPACK's xGESVD documents it. */
int64_t sim_cusolver_singular_elements(int64_t rows, int64_t columns);
