#include "sim/libs/cusolver/handle.h"

#include <limits.h>
#include <stdlib.h>

#include "sim/libs/common/driver.h"

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
    if (handle == NULL) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    if (sim_shim_context() != CUDA_SUCCESS) {
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    }
    *handle = calloc(1, sizeof(**handle));
    return *handle != NULL ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
    free(handle);
    return CUSOLVER_STATUS_SUCCESS;
}

SIM_SHIM_SETTER(cusolverDnSetStream, cusolverStatus_t, cusolverDnHandle_t, cudaStream_t, stream,
                CUSOLVER_STATUS_NOT_INITIALIZED)

SIM_SHIM_GETTER(cusolverDnGetStream, cusolverStatus_t, cusolverDnHandle_t, cudaStream_t, stream,
                CUSOLVER_STATUS_NOT_INITIALIZED, CUSOLVER_STATUS_INVALID_VALUE)

/* Parameter objects have no effect; each is only a unique address. */
#define PARAMETERS(name, type)                                                                     \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDnCreate##name(type *info)                            \
    {                                                                                              \
        *info = malloc(1);                                                                         \
        return *info != NULL ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;             \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDnDestroy##name(type info)                            \
    {                                                                                              \
        free(info);                                                                                \
        return CUSOLVER_STATUS_SUCCESS;                                                            \
    }

PARAMETERS(Params, cusolverDnParams_t)
PARAMETERS(GesvdjInfo, gesvdjInfo_t)
PARAMETERS(SyevjInfo, syevjInfo_t)

/* The settings of parameter objects have no effect either. */
#define SETTING(name, info_type, type)                                                             \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDnX##name(info_type info, type value)                 \
    {                                                                                              \
        return CUSOLVER_STATUS_SUCCESS;                                                            \
    }

SETTING(gesvdjSetTolerance, gesvdjInfo_t, double)
SETTING(gesvdjSetMaxSweeps, gesvdjInfo_t, int)
SETTING(gesvdjSetSortEig, gesvdjInfo_t, int)
SETTING(syevjSetTolerance, syevjInfo_t, double)
SETTING(syevjSetMaxSweeps, syevjInfo_t, int)
SETTING(syevjSetSortEig, syevjInfo_t, int)

void sim_cusolver_add_matrix(struct sim_cusolver_call *call, const struct sim_shim_matrix *matrix,
                             bool written)
{
    if (matrix->data == NULL) {
        return;
    }
    if (sim_shim_matrix_is_valid(matrix)) {
        sim_shim_add_matrix(&call->work, matrix, written);
    } else {
        call->is_invalid = true;
    }
}

cusolverStatus_t sim_cusolver_launch(struct sim_cusolver_call *call, const char *kernel, int *info,
                                     int64_t count)
{
    size_t results = count < 0 ? 0 : (size_t)count;
    CUresult result;

    if (call->handle == NULL) {
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    }
    if (call->is_invalid || count < 0) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    sim_shim_add_write(&call->work, info, results * sizeof(*info));
    result = sim_shim_launch(kernel, &call->work, call->handle->stream);
    if (result == CUDA_SUCCESS && info != NULL && results > 0) {
        result = sim_shim_driver()->cuMemsetD32Async((CUdeviceptr)info, 0, results,
                                                     call->handle->stream);
    }
    return result == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t sim_cusolver_workspace_elements(cusolverDnHandle_t handle, int64_t elements,
                                                 int *ret_elements)
{
    if (handle == NULL) {
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    }
    if (elements < 0 || elements > INT_MAX) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *ret_elements = (int)elements;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t sim_cusolver_workspace_bytes(cusolverDnHandle_t handle, int64_t elements,
                                              cudaDataType type, size_t *ret_device,
                                              size_t *ret_host)
{
    if (handle == NULL) {
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    }
    if (elements < 0 || sim_shim_type_bits(type) == 0) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *ret_device = (size_t)elements * sim_shim_type_bits(type) / 8;
    *ret_host = 0;
    return CUSOLVER_STATUS_SUCCESS;
}
