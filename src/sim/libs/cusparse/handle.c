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

SIM_SHIM_SETTER(cusparseSetStream, cusparseStatus_t, cusparseHandle_t, cudaStream_t, stream,
                CUSPARSE_STATUS_NOT_INITIALIZED)

SIM_SHIM_GETTER(cusparseGetStream, cusparseStatus_t, cusparseHandle_t, cudaStream_t, stream,
                CUSPARSE_STATUS_NOT_INITIALIZED, CUSPARSE_STATUS_INVALID_VALUE)

SIM_SHIM_SETTER(cusparseSetPointerMode, cusparseStatus_t, cusparseHandle_t, cusparsePointerMode_t,
                pointer_mode, CUSPARSE_STATUS_NOT_INITIALIZED)

SIM_SHIM_GETTER(cusparseGetPointerMode, cusparseStatus_t, cusparseHandle_t, cusparsePointerMode_t,
                pointer_mode, CUSPARSE_STATUS_NOT_INITIALIZED, CUSPARSE_STATUS_INVALID_VALUE)

SIM_SHIM_EXPORT cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *version)
{
    if (version == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *version = CUSPARSE_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_PROPERTY(cusparseGetProperty, cusparseStatus_t, CUSPARSE_STATUS_INVALID_VALUE,
                  CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH)

SIM_SHIM_EXPORT const char *cusparseGetErrorName(cusparseStatus_t status)
{
    switch (status) {
        SIM_SHIM_NAME(CUSPARSE_STATUS_SUCCESS)
        SIM_SHIM_NAME(CUSPARSE_STATUS_NOT_INITIALIZED)
        SIM_SHIM_NAME(CUSPARSE_STATUS_ALLOC_FAILED)
        SIM_SHIM_NAME(CUSPARSE_STATUS_INVALID_VALUE)
        SIM_SHIM_NAME(CUSPARSE_STATUS_ARCH_MISMATCH)
        SIM_SHIM_NAME(CUSPARSE_STATUS_MAPPING_ERROR)
        SIM_SHIM_NAME(CUSPARSE_STATUS_EXECUTION_FAILED)
        SIM_SHIM_NAME(CUSPARSE_STATUS_INTERNAL_ERROR)
        SIM_SHIM_NAME(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED)
        SIM_SHIM_NAME(CUSPARSE_STATUS_ZERO_PIVOT)
        SIM_SHIM_NAME(CUSPARSE_STATUS_NOT_SUPPORTED)
        SIM_SHIM_NAME(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
    }
    return "<unknown>";
}

SIM_SHIM_SAME(cusparseGetErrorString, cusparseGetErrorName);

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
