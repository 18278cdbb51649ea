#include "sim/libs/cusparse/handle.h"

#include <stdlib.h>

SIM_SHIM_EXPORT cusparseStatus_t cusparseCreate(cusparseHandle_t *handle)
{
    if (handle == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    if (sim_shim_context() != CUDA_SUCCESS) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    *handle = calloc(1, sizeof(**handle));
    return *handle != NULL ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseDestroy(cusparseHandle_t handle)
{
    free(handle);
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t streamId)
{
    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    handle->stream = streamId;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t *streamId)
{
    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    *streamId = handle->stream;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle,
                                                        cusparsePointerMode_t mode)
{
    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    handle->pointer_mode = mode;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle,
                                                        cusparsePointerMode_t *mode)
{
    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    *mode = handle->pointer_mode;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *version)
{
    if (version == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *version = CUSPARSE_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int *value)
{
    static const int parts[] = {CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH};

    if (value == NULL || (unsigned int)type >= sizeof(parts) / sizeof(parts[0])) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *value = parts[type];
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT const char *cusparseGetErrorName(cusparseStatus_t status)
{
    switch (status) {
#define NAME(value)                                                                                \
    case value:                                                                                    \
        return #value;
        NAME(CUSPARSE_STATUS_SUCCESS)
        NAME(CUSPARSE_STATUS_NOT_INITIALIZED)
        NAME(CUSPARSE_STATUS_ALLOC_FAILED)
        NAME(CUSPARSE_STATUS_INVALID_VALUE)
        NAME(CUSPARSE_STATUS_ARCH_MISMATCH)
        NAME(CUSPARSE_STATUS_MAPPING_ERROR)
        NAME(CUSPARSE_STATUS_EXECUTION_FAILED)
        NAME(CUSPARSE_STATUS_INTERNAL_ERROR)
        NAME(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED)
        NAME(CUSPARSE_STATUS_ZERO_PIVOT)
        NAME(CUSPARSE_STATUS_NOT_SUPPORTED)
        NAME(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
#undef NAME
    }
    return "<unknown>";
}

SIM_SHIM_EXPORT const char *cusparseGetErrorString(cusparseStatus_t status)
{
    return cusparseGetErrorName(status);
}

void sim_cusparse_add_scalar(cusparseHandle_t handle, struct sim_shim_work *work,
                             const void *scalar, cudaDataType type)
{
    if (handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE) {
        sim_shim_add_read(work, scalar, sim_shim_type_bits(type) / 8);
    }
}

cusparseStatus_t sim_cusparse_launch(cusparseHandle_t handle, const char *kernel,
                                     const struct sim_shim_work *work)
{
    return sim_shim_launch(kernel, work, handle->stream) == CUDA_SUCCESS
               ? CUSPARSE_STATUS_SUCCESS
               : CUSPARSE_STATUS_EXECUTION_FAILED;
}
