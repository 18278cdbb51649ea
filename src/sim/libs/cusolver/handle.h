/* Handles of the simulated cuSOLVER, and how its functions name memory and launch.
 *
 * Nothing is solved. What a caller checks, the info of each problem, is set to 0 on the device: all
 * went well. The sizes of workspaces are guesses until they are calibrated on GPUs: cuSOLVER does
 * not document them, so they are those that LAPACK's documentation recommends, for blocks of
 * SIM_CUSOLVER_BLOCK columns.
 *
 * Locking: as the library documents, a handle is used by one thread at a time. */
#pragma once

#include <cusolverDn.h>

#include "sim/libs/common/matrix.h"

#define SIM_CUSOLVER_BLOCK 64

struct cusolverDnContext {
    CUstream stream;
};

/* One call: what it touches. Matrices that are not valid make the launch fail. */
struct sim_cusolver_call {
    cusolverDnHandle_t handle;
    struct sim_shim_work work;
    bool is_invalid;
};

/* Names a stack of matrices; NULL data is left out. */
void sim_cusolver_add_matrix(struct sim_cusolver_call *call, const struct sim_shim_matrix *matrix,
                             bool written);

/* Launches the call, and sets `count` results in device memory to 0. */
cusolverStatus_t sim_cusolver_launch(struct sim_cusolver_call *call, const char *kernel, int *info,
                                     int64_t count);

/* Hands out a size in elements, which the older functions count in int. */
cusolverStatus_t sim_cusolver_workspace_elements(cusolverDnHandle_t handle, int64_t elements,
                                                 int *ret_elements);

/* Hands out a size in bytes on the device, and none on the host. */
cusolverStatus_t sim_cusolver_workspace_bytes(cusolverDnHandle_t handle, int64_t elements,
                                              cudaDataType type, size_t *ret_device,
                                              size_t *ret_host);

/* Bits of an element of a C type. */
#define SIM_CUSOLVER_BITS(type) (sizeof(type) * 8)

/* For each type of elements: its letter, the names of orthogonal and of symmetric matrices, the
 * type, and the real type. */
#define SIM_CUSOLVER_ALL_TYPES(function)                                                           \
    function(S, or, sy, float, float) function(D, or, sy, double, double)                          \
        function(C, un, he, cuComplex, float) function(Z, un, he, cuDoubleComplex, double)
