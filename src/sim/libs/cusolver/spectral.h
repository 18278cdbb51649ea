/* Eigenvalue and singular value problems: the memory that they touch, and their workspaces.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include "sim/libs/cusolver/handle.h"

/* A batch of problems with the same shape. */
struct sim_cusolver_spectral {
    cusolverDnHandle_t handle;
    struct sim_shim_matrix a; /* a.batch is the number of problems */
    void *values;             /* each has value_bits bits */
    size_t value_bits;
    int64_t value_count;
    int64_t value_stride;
    struct sim_shim_matrix left;  /* left vectors; data is NULL if there are none */
    struct sim_shim_matrix right; /* right vectors; data is NULL if there are none */
    void *area;
    size_t area_bytes;
    int *info;
};

/* Adds all of the problem's memory and launches. CUSOLVER_STATUS_INVALID_VALUE for an invalid
 * shape. */
cusolverStatus_t sim_cusolver_spectral_launch(const char *kernel,
                                              const struct sim_cusolver_spectral *problem);

/* Elements of the workspace for the eigenvalues of a symmetric matrix, as LAPACK documents it for
 * xSYEVD. */
int64_t sim_cusolver_symmetric_elements(int64_t order, bool vectors);

/* Elements of the workspace for singular values, as LAPACK documents it for xGESVD. */
int64_t sim_cusolver_singular_elements(int64_t rows, int64_t columns);
