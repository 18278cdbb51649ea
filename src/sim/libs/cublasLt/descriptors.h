/* What the opaque descriptors of the simulated cuBLASLt hold: one field per attribute.
 *
 * Locking: a descriptor is used by one thread at a time, as the library documents. */
#pragma once

#include <cublasLt.h>

/* They live in the caller's cublasLt...Opaque_t, so they must not be larger. */
struct sim_lt_layout {
#define SIM_LT_LAYOUT(name, type, field, initial) type field;
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_LT_LAYOUT
};

struct sim_lt_matmul {
#define SIM_LT_MATMUL(name, type, field, initial) type field;
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_LT_MATMUL
};

struct sim_lt_preference {
#define SIM_LT_PREF(name, type, field, initial) type field;
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_LT_PREF
};

static inline const struct sim_lt_layout *sim_lt_layout_of(cublasLtMatrixLayout_t layout)
{
    return (const struct sim_lt_layout *)layout->data;
}

static inline const struct sim_lt_matmul *sim_lt_matmul_of(cublasLtMatmulDesc_t desc)
{
    return (const struct sim_lt_matmul *)desc->data;
}
