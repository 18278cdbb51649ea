/* The contents of cuBLASLt's opaque descriptors: one field per attribute of attributes.def.
 *
 * Locking: a descriptor is used by one thread at a time, as the library documents. */
#pragma once

#include <cublasLt.h>

/* They are stored in the caller's cublasLt...Opaque_t and must not be larger. */
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
