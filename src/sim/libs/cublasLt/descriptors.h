/* The simulated cuBLASLt. It does not know the other libraries.
 *
 *   attributes    the attributes of each descriptor
 *   descriptors   the contents of descriptors, a field for each attribute
 *   libcublasLt   the version of the library's symbols
 *   matmul        the matrix product, and the choice of its algorithm
 *
 * Locking: a descriptor is used by one thread at a time, as the library documents. */
#pragma once

#include <cublasLt.h>

/* Numbers of attributes that headers of CUDA 12 may lack. */
#if CUBLAS_VER_MAJOR < 13
#    define CUBLASLT_MATRIX_LAYOUT_BATCH_MODE            8
#    define CUBLASLT_MATMUL_DESC_A_SCALE_MODE            31
#    define CUBLASLT_MATMUL_DESC_B_SCALE_MODE            32
#    define CUBLASLT_MATMUL_DESC_C_SCALE_MODE            33
#    define CUBLASLT_MATMUL_DESC_D_SCALE_MODE            34
#    define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE 35
#    define CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER     36
#    define CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE        37
#endif

/* The structs below are stored in the caller's cublasLt...Opaque_t and must not be larger. */
struct sim_cublaslt_layout {
#define SIM_CUBLASLT_LAYOUT(name, type, field, initial) type field;
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_LAYOUT
};

struct sim_cublaslt_matmul {
#define SIM_CUBLASLT_MATMUL(name, type, field, initial) type field;
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_MATMUL
};

struct sim_cublaslt_preference {
#define SIM_CUBLASLT_PREF(name, type, field, initial) type field;
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_PREF
};

static inline const struct sim_cublaslt_layout *
sim_cublaslt_layout_of(cublasLtMatrixLayout_t layout)
{
    return (const struct sim_cublaslt_layout *)layout->data;
}

static inline const struct sim_cublaslt_matmul *sim_cublaslt_matmul_of(cublasLtMatmulDesc_t desc)
{
    return (const struct sim_cublaslt_matmul *)desc->data;
}
