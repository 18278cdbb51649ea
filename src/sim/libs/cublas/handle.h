/* Handles of the simulated cuBLAS, and how its functions name memory and launch.
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
    void *default_workspace; /* the handle's own */
    size_t default_workspace_bytes;
    void *workspace; /* in use: the default one or the caller's; NULL for none */
    size_t workspace_bytes;
};

/* Names a scalar (alpha, beta, a result), which is in device memory if the pointer mode says so. */
void sim_cublas_add_scalar(cublasHandle_t handle, struct sim_shim_work *work, const void *scalar,
                           size_t bytes);

/* The same for a result; in host memory it becomes 0 at once. */
void sim_cublas_add_result(cublasHandle_t handle, struct sim_shim_work *work, void *scalar,
                           size_t bytes);

/* Names a vector of n elements that are `increment` elements apart. */
void sim_cublas_add_vector(struct sim_shim_work *work, const void *data, size_t element_bytes,
                           int64_t n, int64_t increment, bool written);

/* Launches the work on the handle's stream, with its workspace. */
cublasStatus_t sim_cublas_launch(cublasHandle_t handle, const char *kernel,
                                 struct sim_shim_work *work);

/* Every function below exists twice, with int and with int64_t sizes. */
#define SIM_CUBLAS_BOTH_WIDTHS(function, ...)                                                      \
    function(, int, __VA_ARGS__) function(_64, int64_t, __VA_ARGS__)

/* And for each type of elements. */
#define SIM_CUBLAS_ALL_TYPES(function)                                                             \
    SIM_CUBLAS_BOTH_WIDTHS(function, S, float)                                                     \
    SIM_CUBLAS_BOTH_WIDTHS(function, D, double)                                                    \
    SIM_CUBLAS_BOTH_WIDTHS(function, C, cuComplex)                                                 \
    SIM_CUBLAS_BOTH_WIDTHS(function, Z, cuDoubleComplex)
