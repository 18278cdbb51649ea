#include "sim/libs/cublas/handle.h"

#include <stdlib.h>
#include <string.h>

/* Default workspace sizes as documented for cublasSetWorkspace(). */
#define WORKSPACE_BYTES        ((size_t)4 << 20)
#define WORKSPACE_BYTES_HOPPER ((size_t)32 << 20)
#define WORKSPACE_BYTES_LATER  ((size_t)12 << 20)

static size_t workspace_default(void)
{
    int capability = sim_shim_capability();

    if (capability == 9) {
        return WORKSPACE_BYTES_HOPPER;
    }
    return capability > 9 ? WORKSPACE_BYTES_LATER : WORKSPACE_BYTES;
}

SIM_SHIM_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    cublasHandle_t self;

    if (handle == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (sim_shim_context() != CUDA_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    self->default_workspace_bytes = workspace_default();
    if (sim_shim_alloc(self->default_workspace_bytes, &self->default_workspace) != CUDA_SUCCESS) {
        free(self);
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    self->workspace = self->default_workspace;
    self->workspace_bytes = self->default_workspace_bytes;
    *handle = self;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    sim_shim_free(handle->default_workspace);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* As documented, setting a stream restores the default workspace. */
SIM_SHIM_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)
{
    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handle->stream = streamId;
    handle->workspace = handle->default_workspace;
    handle->workspace_bytes = handle->default_workspace_bytes;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                                     size_t workspaceSizeInBytes)
{
    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if ((uintptr_t)workspace % 256 != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->workspace = workspace;
    handle->workspace_bytes = workspace == NULL ? 0 : workspaceSizeInBytes;
    return CUBLAS_STATUS_SUCCESS;
}

/* Getters and setters of the handle's settings. */
#define GETTER(name, type, field)                                                                  \
    SIM_SHIM_GETTER(name, cublasStatus_t, cublasHandle_t, type, field,                             \
                    CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INVALID_VALUE)
#define SETTER(name, type, field)                                                                  \
    SIM_SHIM_SETTER(name, cublasStatus_t, cublasHandle_t, type, field,                             \
                    CUBLAS_STATUS_NOT_INITIALIZED)

GETTER(cublasGetStream_v2, cudaStream_t, stream)
GETTER(cublasGetPointerMode_v2, cublasPointerMode_t, pointer_mode)
SETTER(cublasSetPointerMode_v2, cublasPointerMode_t, pointer_mode)
GETTER(cublasGetAtomicsMode, cublasAtomicsMode_t, atomics_mode)
SETTER(cublasSetAtomicsMode, cublasAtomicsMode_t, atomics_mode)
GETTER(cublasGetMathMode, cublasMath_t, math_mode)
SETTER(cublasSetMathMode, cublasMath_t, math_mode)
GETTER(cublasGetSmCountTarget, int, multiprocessor_target)
SETTER(cublasSetSmCountTarget, int, multiprocessor_target)

SIM_SHIM_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    if (version == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_SHIM_PROPERTY(cublasGetProperty, cublasStatus_t, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_VER_MAJOR,
                  CUBLAS_VER_MINOR, CUBLAS_VER_PATCH)

SIM_SHIM_EXPORT size_t cublasGetCudartVersion(void)
{
    return CUDA_VERSION;
}

SIM_SHIM_EXPORT const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
        SIM_SHIM_NAME(CUBLAS_STATUS_SUCCESS)
        SIM_SHIM_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
        SIM_SHIM_NAME(CUBLAS_STATUS_ALLOC_FAILED)
        SIM_SHIM_NAME(CUBLAS_STATUS_INVALID_VALUE)
        SIM_SHIM_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
        SIM_SHIM_NAME(CUBLAS_STATUS_MAPPING_ERROR)
        SIM_SHIM_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
        SIM_SHIM_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
        SIM_SHIM_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
        SIM_SHIM_NAME(CUBLAS_STATUS_LICENSE_ERROR)
    }
    return "<unknown>";
}

SIM_SHIM_SAME(cublasGetStatusString, cublasGetStatusName);

void sim_cublas_add_scalar(cublasHandle_t handle, struct sim_shim_work *work, const void *scalar,
                           size_t bytes)
{
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        sim_shim_add_read(work, scalar, bytes);
    }
}

void sim_cublas_add_result(cublasHandle_t handle, struct sim_shim_work *work, void *scalar,
                           size_t bytes)
{
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        sim_shim_add_write(work, scalar, bytes);
    } else {
        memset(scalar, 0, bytes);
    }
}

void sim_cublas_add_vector(struct sim_shim_work *work, const void *data, size_t element_bytes,
                           int64_t n, int64_t increment, bool written)
{
    struct sim_shim_matrix vector = {
        .data = data,
        .element_bits = element_bytes * 8,
        .rows = 1,
        .columns = n,
        .ld = increment < 0 ? -increment : increment,
        .batch = 1,
    };

    sim_shim_add_matrix(work, &vector, written);
}

cublasStatus_t sim_cublas_launch(cublasHandle_t handle, const char *kernel,
                                 struct sim_shim_work *work)
{
    sim_shim_add_write(work, handle->workspace, handle->workspace_bytes);
    return sim_shim_launch(kernel, work, handle->stream) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
