#include "sim/libs/cudnn/handle.h"

#include <stdlib.h>
#include <string.h>

SIM_SHIM_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    cudnnHandle_t self;

    if (handle == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (sim_shim_context() != CUDA_SUCCESS) {
        return CUDNN_STATUS_NOT_INITIALIZED;
    }
    self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    *handle = self;
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_SETTER(cudnnSetStream, cudnnStatus_t, cudnnHandle_t, cudaStream_t, stream,
                CUDNN_STATUS_BAD_PARAM)

SIM_SHIM_GETTER(cudnnGetStream, cudnnStatus_t, cudnnHandle_t, cudaStream_t, stream,
                CUDNN_STATUS_BAD_PARAM, CUDNN_STATUS_BAD_PARAM)

/* The version of the headers, or the cuDNN of PyTorch 2.15 if the headers are older. A program
 * refuses a library whose minor number is lower than that of the program's headers, but accepts a
 * higher one. */
enum { VERSION = CUDNN_VERSION > 92600 ? CUDNN_VERSION : 92600 };

SIM_SHIM_EXPORT size_t cudnnGetVersion(void)
{
    return VERSION;
}

SIM_SHIM_EXPORT size_t cudnnGetCudartVersion(void)
{
    return CUDA_VERSION;
}

SIM_SHIM_PROPERTY(cudnnGetProperty, cudnnStatus_t, CUDNN_STATUS_BAD_PARAM, VERSION / 10000,
                  VERSION / 100 % 100, VERSION % 100)

SIM_SHIM_EXPORT const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch ((int)status) {
        SIM_SHIM_NAME(CUDNN_STATUS_SUCCESS)
        SIM_SHIM_NAME(CUDNN_STATUS_NOT_INITIALIZED)
        SIM_SHIM_NAME(CUDNN_STATUS_BAD_PARAM)
        SIM_SHIM_NAME(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED)
        SIM_SHIM_NAME(CUDNN_STATUS_NOT_SUPPORTED)
        SIM_SHIM_NAME(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
        SIM_SHIM_NAME(CUDNN_STATUS_EXECUTION_FAILED)
    }
    return "CUDNN_STATUS_UNKNOWN";
}

SIM_SHIM_EXPORT void cudnnGetLastErrorString(char *message, size_t max_size)
{
    if (message != NULL && max_size > 0) {
        message[0] = '\0';
    }
}

size_t sim_cudnn_type_bits(cudnnDataType_t type)
{
    switch ((int)type) {
    case CUDNN_DATA_FP4_E2M1:
    case CUDNN_DATA_INT4:
    case CUDNN_DATA_UINT4:
        return 4;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
    case CUDNN_DATA_FP8_E8M0:
        return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
        return 16;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8:
        return 32;
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
    case CUDNN_DATA_COMPLEX_FP32:
        return 64;
    case CUDNN_DATA_COMPLEX_FP64:
        return 128;
    default:
        return 0;
    }
}

cudnnStatus_t sim_cudnn_launch(cudnnHandle_t handle, const char *kernel,
                               const struct sim_shim_work *work)
{
    return sim_shim_launch(kernel, work, handle->stream) == CUDA_SUCCESS
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
}
