/* The simulated cuBLAS. It does not know the other libraries.
 *
 *   gemm        matrix products
 *   handle      handles, and steps that all functions share
 *   libcublas   the version of the library's symbols
 *   solve       triangular systems, batched factorisations
 *   vector      dot products, matrix-vector products
 *
 * Locking: as the library documents, a handle is used by one thread at a time. */
#pragma once

#include <cublas_v2.h>

#include "sim/libs/common/matrix.h"

struct cublasContext {
    CUstream stream;
    cublasPointerMode_t pointer_mode;
    cublasAtomicsMode_t atomics_mode;
    cublasMath_t math_mode;
    int multiprocessor_target;
    void *default_workspace; /* owned */
    size_t default_workspace_bytes;
    void *workspace; /* the workspace in use: the default or the caller's; NULL: none */
    size_t workspace_bytes;
};

/* If the pointer mode places scalars in device memory, adds a scalar that is read (alpha, beta) to
 * the work. */
void sim_cublas_add_scalar(cublasHandle_t handle, struct sim_shim_work *work, const void *scalar,
                           size_t bytes);

/* If the pointer mode places results in device memory, adds the memory of a result to the work.
 * Otherwise sets the result to 0 immediately. */
void sim_cublas_add_result(cublasHandle_t handle, struct sim_shim_work *work, void *scalar,
                           size_t bytes);

/* Adds a vector of n elements with a stride of `increment` elements. */
void sim_cublas_add_vector(struct sim_shim_work *work, const void *data, size_t element_bytes,
                           int64_t n, int64_t increment, bool written);

/* Launches the work on the handle's stream. The work also writes the handle's workspace. */
cublasStatus_t sim_cublas_launch(cublasHandle_t handle, const char *kernel,
                                 struct sim_shim_work *work);

/* Expands `function` twice: for int sizes, and with the suffix _64 for int64_t sizes. */
#define SIM_CUBLAS_BOTH_WIDTHS(function, ...)                                                      \
    function(, int, __VA_ARGS__) function(_64, int64_t, __VA_ARGS__)

/* Expands `function` for both widths and the four element types. */
#define SIM_CUBLAS_ALL_TYPES(function)                                                             \
    SIM_CUBLAS_BOTH_WIDTHS(function, S, float)                                                     \
    SIM_CUBLAS_BOTH_WIDTHS(function, D, double)                                                    \
    SIM_CUBLAS_BOTH_WIDTHS(function, C, cuComplex)                                                 \
    SIM_CUBLAS_BOTH_WIDTHS(function, Z, cuDoubleComplex)
