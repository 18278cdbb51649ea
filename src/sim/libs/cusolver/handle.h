/* The simulated cuSOLVER. It does not know the other libraries.
 *
 *   factorise        Cholesky, LU and LDL, and their linear systems
 *   handle           handles, and steps that all functions share
 *   libcusolver      the version of the library's symbols
 *   orthogonal       QR
 *   spectral         memory and workspaces of eigenvalue and singular value problems
 *   spectral_typed   the older functions of spectral, one for each element type
 *
 * Nothing is solved. The status (info) of every problem is set to 0 on the device, which means
 * success. cuSOLVER does not document workspace sizes. The sizes here are estimates: the sizes that
 * LAPACK's documentation recommends for blocks of SIM_CUSOLVER_BLOCK columns.
 *
 * Locking: a handle is used by one thread at a time, as the library documents. */
#pragma once

#include <cusolverDn.h>

#include "sim/libs/common/matrix.h"

#define SIM_CUSOLVER_BLOCK 64

struct cusolverDnContext {
    CUstream stream;
};

/* One call and the memory that it touches. If an invalid matrix was added, the launch fails. */
struct sim_cusolver_call {
    cusolverDnHandle_t handle;
    struct sim_shim_work work;
    bool is_invalid;
};

/* Adds a batch of matrices; NULL data is left out. */
void sim_cusolver_add_matrix(struct sim_cusolver_call *call, const struct sim_shim_matrix *matrix,
                             bool written);

/* Launches the call and sets `count` elements of `info`, in device memory, to 0.
 * CUSOLVER_STATUS_INVALID_VALUE if an invalid matrix was added or the count is negative. */
cusolverStatus_t sim_cusolver_launch(struct sim_cusolver_call *call, const char *kernel, int *info,
                                     int64_t count);

/* Returns a workspace size in elements as an int, for the older functions.
 * CUSOLVER_STATUS_INVALID_VALUE if it does not fit. */
cusolverStatus_t sim_cusolver_workspace_elements(cusolverDnHandle_t handle, int64_t elements,
                                                 int *ret_elements);

/* Returns a workspace size in bytes on the device, and 0 bytes on the host. */
cusolverStatus_t sim_cusolver_workspace_bytes(cusolverDnHandle_t handle, int64_t elements,
                                              cudaDataType type, size_t *ret_device,
                                              size_t *ret_host);

/* Bits of an element of a C type. */
#define SIM_CUSOLVER_BITS(type) (sizeof(type) * 8)

/* Expands `function` for each element type. The arguments are the type's letter, the infix for
 * orthogonal or unitary matrices, the infix for symmetric or Hermitian matrices, the type, and its
 * real type. */
#define SIM_CUSOLVER_ALL_TYPES(function)                                                           \
    function(S, or, sy, float, float) function(D, or, sy, double, double)                          \
        function(C, un, he, cuComplex, float) function(Z, un, he, cuDoubleComplex, double)
