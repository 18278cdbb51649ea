#include "sim/libs/cublasLt/descriptors.h"

#include <stdlib.h>
#include <string.h>

#include "sim/libs/common/shim.h"

/* The place of an attribute in its descriptor. */
struct attribute {
    int id;
    size_t offset;
    size_t bytes;
};

static const struct attribute layout_attributes[] = {
#define SIM_CUBLASLT_LAYOUT(name, type, field, initial)                                            \
    {CUBLASLT_MATRIX_LAYOUT_##name, offsetof(struct sim_cublaslt_layout, field), sizeof(type)},
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_LAYOUT
};

static const struct attribute matmul_attributes[] = {
#define SIM_CUBLASLT_MATMUL(name, type, field, initial)                                            \
    {CUBLASLT_MATMUL_DESC_##name, offsetof(struct sim_cublaslt_matmul, field), sizeof(type)},
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_MATMUL
};

static const struct attribute preference_attributes[] = {
#define SIM_CUBLASLT_PREF(name, type, field, initial)                                              \
    {CUBLASLT_MATMUL_PREF_##name, offsetof(struct sim_cublaslt_preference, field), sizeof(type)},
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_PREF
};

static const struct sim_cublaslt_layout layout_defaults = {
#define SIM_CUBLASLT_LAYOUT(name, type, field, initial) .field = initial,
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_LAYOUT
};

static const struct sim_cublaslt_matmul matmul_defaults = {
#define SIM_CUBLASLT_MATMUL(name, type, field, initial) .field = initial,
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_MATMUL
};

static const struct sim_cublaslt_preference preference_defaults = {
#define SIM_CUBLASLT_PREF(name, type, field, initial) .field = initial,
#include "sim/libs/cublasLt/attributes.def"
#undef SIM_CUBLASLT_PREF
};

static cublasStatus_t initialise(void *opaque, size_t size, const void *defaults, size_t needed)
{
    if (opaque == NULL || size < needed) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memset(opaque, 0, size);
    memcpy(opaque, defaults, needed);
    return CUBLAS_STATUS_SUCCESS;
}

/* The attribute of that id; NULL if there is none or its size is not `bytes`. */
static const struct attribute *find(const struct attribute *list, size_t count, int id,
                                    size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].id == id) {
            return list[i].bytes == bytes ? &list[i] : NULL;
        }
    }
    return NULL;
}

static cublasStatus_t set(void *opaque, const struct attribute *attribute, const void *value)
{
    if (opaque == NULL || attribute == NULL || value == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy((char *)opaque + attribute->offset, value, attribute->bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const void *opaque, const struct attribute *list, size_t count, int id,
                          void *buffer, size_t bytes, size_t *written)
{
    const struct attribute *attribute = NULL;

    for (size_t i = 0; i < count; i++) {
        if (list[i].id == id) {
            attribute = &list[i];
        }
    }
    if (opaque == NULL || attribute == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (written != NULL) {
        *written = attribute->bytes;
    }
    if (buffer == NULL || bytes != attribute->bytes) {
        return bytes == 0 && written != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(buffer, (const char *)opaque + attribute->offset, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The destroy, set and get functions of one kind of descriptor. */
#define DESCRIPTOR(kind, handle_type, enum_type, table)                                            \
    SIM_SHIM_EXPORT cublasStatus_t cublasLt##kind##Destroy(handle_type desc)                       \
    {                                                                                              \
        free(desc);                                                                                \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublasLt##kind##SetAttribute(                                   \
        handle_type desc, enum_type attr, const void *buf, size_t sizeInBytes)                     \
    {                                                                                              \
        return set(desc, find(table, COUNT(table), (int)attr, sizeInBytes), buf);                  \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublasLt##kind##GetAttribute(                                   \
        handle_type desc, enum_type attr, void *buf, size_t sizeInBytes, size_t *sizeWritten)      \
    {                                                                                              \
        return get(desc, table, COUNT(table), (int)attr, buf, sizeInBytes, sizeWritten);           \
    }

DESCRIPTOR(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, layout_attributes)
DESCRIPTOR(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, matmul_attributes)
DESCRIPTOR(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
           preference_attributes)

/* Completes a create function: frees *desc, which was allocated, after a failure. */
static cublasStatus_t created(void **desc, cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        free(*desc);
        *desc = NULL;
    }
    return status;
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
                                                                 size_t size, cudaDataType type,
                                                                 uint64_t rows, uint64_t cols,
                                                                 int64_t ld)
{
    struct sim_cublaslt_layout values = layout_defaults;

    values.type = type;
    values.rows = rows;
    values.columns = cols;
    values.ld = ld;
    return initialise(matLayout, size, &values, sizeof(values));
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout,
                                                          cudaDataType type, uint64_t rows,
                                                          uint64_t cols, int64_t ld)
{
    *matLayout = malloc(sizeof(**matLayout));
    return created((void **)matLayout, cublasLtMatrixLayoutInit_internal(
                                           *matLayout, sizeof(**matLayout), type, rows, cols, ld));
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc,
                                                               size_t size,
                                                               cublasComputeType_t computeType,
                                                               cudaDataType_t scaleType)
{
    struct sim_cublaslt_matmul values = matmul_defaults;

    values.compute_type = (int32_t)computeType;
    values.scale_type = scaleType;
    return initialise(matmulDesc, size, &values, sizeof(values));
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc,
                                                        cublasComputeType_t computeType,
                                                        cudaDataType_t scaleType)
{
    *matmulDesc = malloc(sizeof(**matmulDesc));
    return created(
        (void **)matmulDesc,
        cublasLtMatmulDescInit_internal(*matmulDesc, sizeof(**matmulDesc), computeType, scaleType));
}

SIM_SHIM_EXPORT cublasStatus_t
cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t pref, size_t size)
{
    return initialise(pref, size, &preference_defaults, sizeof(preference_defaults));
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    *pref = malloc(sizeof(**pref));
    return created((void **)pref, cublasLtMatmulPreferenceInit_internal(*pref, sizeof(**pref)));
}

_Static_assert(sizeof(struct sim_cublaslt_layout) <= sizeof(cublasLtMatrixLayoutOpaque_t),
               "layout");
_Static_assert(sizeof(struct sim_cublaslt_matmul) <= sizeof(cublasLtMatmulDescOpaque_t), "matmul");
_Static_assert(sizeof(struct sim_cublaslt_preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
               "preference");
