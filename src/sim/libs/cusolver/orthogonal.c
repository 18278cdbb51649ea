/* Orthogonal factorisations (QR). */
#include "sim/libs/cusolver/handle.h"

/* A matrix of Householder reflectors and their scalars, and the matrix, if any, to which the
 * reflectors are applied. */
struct reflectors {
    cusolverDnHandle_t handle;
    int64_t rows, columns, count;
    const void *a;
    size_t bits;
    int64_t ld;
    const void *scalars;
    struct sim_shim_matrix target; /* data is NULL if there is none */
    void *area;
    size_t area_bytes;
    int *info;
};

static cusolverStatus_t run(const char *kernel, const struct reflectors *p, bool makes_scalars)
{
    struct sim_cusolver_call call = {.handle = p->handle, .is_invalid = p->count < 0};
    size_t scalar_bytes = call.is_invalid ? 0 : (size_t)p->count * p->bits / 8;

    sim_cusolver_add_matrix(
        &call, &(struct sim_shim_matrix){p->a, p->bits, p->rows, p->columns, p->ld, 0, 1},
        p->target.data == NULL);
    sim_cusolver_add_matrix(&call, &p->target, true);
    if (makes_scalars) {
        sim_shim_add_write(&call.work, p->scalars, scalar_bytes);
    } else {
        sim_shim_add_read(&call.work, p->scalars, scalar_bytes);
    }
    sim_shim_add_write(&call.work, p->area, p->area_bytes);
    return sim_cusolver_launch(&call, kernel, p->info, 1);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t area_elements(int64_t columns)
{
    return SIM_CUSOLVER_BLOCK * columns;
}

#define GEQRF(letter, orthogonal, symmetric, type, real)                                           \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##geqrf_bufferSize(                         \
        cusolverDnHandle_t handle, int m, int n, type *A, int lda, int *lwork)                     \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, area_elements(n), lwork);                   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##geqrf(                                    \
        cusolverDnHandle_t handle, int m, int n, type *A, int lda, type *TAU, type *Workspace,     \
        int Lwork, int *devInfo)                                                                   \
    {                                                                                              \
        return run("geqrf",                                                                        \
                   &(struct reflectors){.handle = handle,                                          \
                                        .rows = m,                                                 \
                                        .columns = n,                                              \
                                        .count = smaller(m, n),                                    \
                                        .a = A,                                                    \
                                        .bits = SIM_CUSOLVER_BITS(type),                           \
                                        .ld = lda,                                                 \
                                        .scalars = TAU,                                            \
                                        .area = Workspace,                                         \
                                        .area_bytes = (size_t)Lwork * sizeof(type),                \
                                        .info = devInfo},                                          \
                   true);                                                                          \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##orthogonal##gqr_bufferSize(               \
        cusolverDnHandle_t handle, int m, int n, int k, const type *A, int lda, const type *tau,   \
        int *lwork)                                                                                \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, area_elements(n), lwork);                   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##orthogonal##gqr(                          \
        cusolverDnHandle_t handle, int m, int n, int k, type *A, int lda, const type *tau,         \
        type *work, int lwork, int *info)                                                          \
    {                                                                                              \
        return run("orgqr",                                                                        \
                   &(struct reflectors){.handle = handle,                                          \
                                        .rows = m,                                                 \
                                        .columns = n,                                              \
                                        .count = k,                                                \
                                        .a = A,                                                    \
                                        .bits = SIM_CUSOLVER_BITS(type),                           \
                                        .ld = lda,                                                 \
                                        .scalars = tau,                                            \
                                        .area = work,                                              \
                                        .area_bytes = (size_t)lwork * sizeof(type),                \
                                        .info = info},                                             \
                   false);                                                                         \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##orthogonal##mqr_bufferSize(               \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, int n,   \
        int k, const type *A, int lda, const type *tau, const type *C, int ldc, int *lwork)        \
    {                                                                                              \
        return sim_cusolver_workspace_elements(                                                    \
            handle, area_elements(side == CUBLAS_SIDE_LEFT ? n : m), lwork);                       \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##orthogonal##mqr(                          \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, int n,   \
        int k, const type *A, int lda, const type *tau, type *C, int ldc, type *work, int lwork,   \
        int *devInfo)                                                                              \
    {                                                                                              \
        return run("ormqr",                                                                        \
                   &(struct reflectors){.handle = handle,                                          \
                                        .rows = side == CUBLAS_SIDE_LEFT ? m : n,                  \
                                        .columns = k,                                              \
                                        .count = k,                                                \
                                        .a = A,                                                    \
                                        .bits = SIM_CUSOLVER_BITS(type),                           \
                                        .ld = lda,                                                 \
                                        .scalars = tau,                                            \
                                        .target = {C, SIM_CUSOLVER_BITS(type), m, n, ldc, 0, 1},   \
                                        .area = work,                                              \
                                        .area_bytes = (size_t)lwork * sizeof(type),                \
                                        .info = devInfo},                                          \
                   false);                                                                         \
    }

SIM_CUSOLVER_ALL_TYPES(GEQRF)

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXgeqrf_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
    cudaDataType dataTypeA, const void *A, int64_t lda, cudaDataType dataTypeTau, const void *tau,
    cudaDataType computeType, size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost)
{
    return sim_cusolver_workspace_bytes(handle, area_elements(n), dataTypeA,
                                        workspaceInBytesOnDevice, workspaceInBytesOnHost);
}

SIM_SHIM_EXPORT cusolverStatus_t
cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                 cudaDataType dataTypeA, void *A, int64_t lda, cudaDataType dataTypeTau, void *tau,
                 cudaDataType computeType, void *bufferOnDevice, size_t workspaceInBytesOnDevice,
                 void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    return run("geqrf",
               &(struct reflectors){.handle = handle,
                                    .rows = m,
                                    .columns = n,
                                    .count = smaller(m, n),
                                    .a = A,
                                    .bits = sim_shim_type_bits(dataTypeA),
                                    .ld = lda,
                                    .scalars = tau,
                                    .area = bufferOnDevice,
                                    .area_bytes = workspaceInBytesOnDevice,
                                    .info = info},
               true);
}
