/* Factorisations (Cholesky, LU, LDL) and the linear systems that they solve. */
#include "sim/libs/cusolver/handle.h"

/* The factorisation of one matrix in place. */
struct factors {
    cusolverDnHandle_t handle;
    int64_t rows, columns;
    void *a;
    size_t bits;
    int64_t ld;
    void *area;
    size_t area_bytes;
    int *pivots;
    int *info;
};

static cusolverStatus_t factorise(const char *kernel, const struct factors *p)
{
    struct sim_cusolver_call call = {.handle = p->handle};
    int64_t pivots = p->rows < p->columns ? p->rows : p->columns;

    sim_cusolver_add_matrix(
        &call, &(struct sim_shim_matrix){p->a, p->bits, p->rows, p->columns, p->ld, 0, 1}, true);
    if (!call.is_invalid) {
        sim_shim_add_write(&call.work, p->pivots, (size_t)pivots * sizeof(*p->pivots));
    }
    sim_shim_add_write(&call.work, p->area, p->area_bytes);
    return sim_cusolver_launch(&call, kernel, p->info, 1);
}

/* A linear system whose matrix has been factorised. */
struct system {
    cusolverDnHandle_t handle;
    int64_t order, sides;
    const void *a;
    size_t bits;
    int64_t ld;
    const void *pivots;
    size_t pivot_bytes; /* bytes of one pivot */
    void *b;
    int64_t ldb;
    void *area;
    size_t area_bytes;
    int *info;
};

static cusolverStatus_t solve(const char *kernel, const struct system *p)
{
    struct sim_cusolver_call call = {.handle = p->handle};

    sim_cusolver_add_matrix(
        &call, &(struct sim_shim_matrix){p->a, p->bits, p->order, p->order, p->ld, 0, 1}, false);
    sim_cusolver_add_matrix(
        &call, &(struct sim_shim_matrix){p->b, p->bits, p->order, p->sides, p->ldb, 0, 1}, true);
    if (!call.is_invalid) {
        sim_shim_add_read(&call.work, p->pivots, (size_t)p->order * p->pivot_bytes);
    }
    sim_shim_add_write(&call.work, p->area, p->area_bytes);
    return sim_cusolver_launch(&call, kernel, p->info, 1);
}

/* A batch given as arrays of matrix addresses. The arrays are in device memory and not read here,
 * so only the arrays are added, not the matrices. */
static cusolverStatus_t run_batched(cusolverDnHandle_t handle, const char *kernel, const void *a,
                                    const void *b, int64_t batch, int *info, int64_t results)
{
    struct sim_cusolver_call call = {.handle = handle, .is_invalid = batch < 0};

    if (!call.is_invalid) {
        sim_shim_add_read(&call.work, a, (size_t)batch * sizeof(void *));
        sim_shim_add_read(&call.work, b, (size_t)batch * sizeof(void *));
    }
    return sim_cusolver_launch(&call, kernel, info, results);
}

static int64_t area_elements(int64_t order)
{
    return SIM_CUSOLVER_BLOCK * order;
}

#define POTRF(letter, orthogonal, symmetric, type, real)                                           \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##potrf_bufferSize(                         \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *A, int lda, int *Lwork)     \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, area_elements(n), Lwork);                   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##potrf(                                    \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *A, int lda,                 \
        type *Workspace, int Lwork, int *devInfo)                                                  \
    {                                                                                              \
        return factorise("potrf", &(struct factors){handle, n, n, A, SIM_CUSOLVER_BITS(type), lda, \
                                                    Workspace, (size_t)Lwork * sizeof(type), NULL, \
                                                    devInfo});                                     \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##potrs(                                    \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs, const type *A, int lda, \
        type *B, int ldb, int *devInfo)                                                            \
    {                                                                                              \
        return solve("potrs", &(struct system){handle, n, nrhs, A, SIM_CUSOLVER_BITS(type), lda,   \
                                               NULL, 0, B, ldb, NULL, 0, devInfo});                \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##potrfBatched(                             \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *Aarray[], int lda,          \
        int *infoArray, int batchSize)                                                             \
    {                                                                                              \
        return run_batched(handle, "potrf_batched", Aarray, NULL, batchSize, infoArray,            \
                           batchSize);                                                             \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##potrsBatched(                             \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs, type *A[], int lda,     \
        type *B[], int ldb, int *d_info, int batchSize)                                            \
    {                                                                                              \
        return run_batched(handle, "potrs_batched", A, B, batchSize, d_info, 1);                   \
    }

SIM_CUSOLVER_ALL_TYPES(POTRF)

#define GETRF(letter, orthogonal, symmetric, type, real)                                           \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##getrf_bufferSize(                         \
        cusolverDnHandle_t handle, int m, int n, type *A, int lda, int *Lwork)                     \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, area_elements(m), Lwork);                   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##getrf(                                    \
        cusolverDnHandle_t handle, int m, int n, type *A, int lda, type *Workspace, int *devIpiv,  \
        int *devInfo)                                                                              \
    {                                                                                              \
        return factorise("getrf", &(struct factors){                                               \
                                      handle, m, n, A, SIM_CUSOLVER_BITS(type), lda, Workspace,    \
                                      (size_t)area_elements(m) * sizeof(type), devIpiv, devInfo}); \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##getrs(                                    \
        cusolverDnHandle_t handle, cublasOperation_t trans, int n, int nrhs, const type *A,        \
        int lda, const int *devIpiv, type *B, int ldb, int *devInfo)                               \
    {                                                                                              \
        return solve("getrs",                                                                      \
                     &(struct system){handle, n, nrhs, A, SIM_CUSOLVER_BITS(type), lda, devIpiv,   \
                                      sizeof(*devIpiv), B, ldb, NULL, 0, devInfo});                \
    }

SIM_CUSOLVER_ALL_TYPES(GETRF)

#define SYTRF(letter, orthogonal, symmetric, type, real)                                           \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##sytrf_bufferSize(                         \
        cusolverDnHandle_t handle, int n, type *A, int lda, int *lwork)                            \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, area_elements(n), lwork);                   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##sytrf(                                    \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *A, int lda, int *ipiv,      \
        type *work, int lwork, int *info)                                                          \
    {                                                                                              \
        return factorise("sytrf",                                                                  \
                         &(struct factors){handle, n, n, A, SIM_CUSOLVER_BITS(type), lda, work,    \
                                           (size_t)lwork * sizeof(type), ipiv, info});             \
    }

SIM_CUSOLVER_ALL_TYPES(SYTRF)

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXpotrf_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
    cudaDataType dataTypeA, const void *A, int64_t lda, cudaDataType computeType,
    size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost)
{
    return sim_cusolver_workspace_bytes(handle, area_elements(n), dataTypeA,
                                        workspaceInBytesOnDevice, workspaceInBytesOnHost);
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXpotrf(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
    cudaDataType dataTypeA, void *A, int64_t lda, cudaDataType computeType, void *bufferOnDevice,
    size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    return factorise("potrf",
                     &(struct factors){handle, n, n, A, sim_shim_type_bits(dataTypeA), lda,
                                       bufferOnDevice, workspaceInBytesOnDevice, NULL, info});
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle,
                                                  cusolverDnParams_t params, cublasFillMode_t uplo,
                                                  int64_t n, int64_t nrhs, cudaDataType dataTypeA,
                                                  const void *A, int64_t lda,
                                                  cudaDataType dataTypeB, void *B, int64_t ldb,
                                                  int *info)
{
    return solve("potrs", &(struct system){handle, n, nrhs, A, sim_shim_type_bits(dataTypeA), lda,
                                           NULL, 0, B, ldb, NULL, 0, info});
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXsytrs_bufferSize(
    cusolverDnHandle_t handle, cublasFillMode_t uplo, int64_t n, int64_t nrhs,
    cudaDataType dataTypeA, const void *A, int64_t lda, const int64_t *ipiv, cudaDataType dataTypeB,
    void *B, int64_t ldb, size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost)
{
    return sim_cusolver_workspace_bytes(handle, n * nrhs, dataTypeB, workspaceInBytesOnDevice,
                                        workspaceInBytesOnHost);
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXsytrs(
    cusolverDnHandle_t handle, cublasFillMode_t uplo, int64_t n, int64_t nrhs,
    cudaDataType dataTypeA, const void *A, int64_t lda, const int64_t *ipiv, cudaDataType dataTypeB,
    void *B, int64_t ldb, void *bufferOnDevice, size_t workspaceInBytesOnDevice, void *bufferOnHost,
    size_t workspaceInBytesOnHost, int *info)
{
    return solve("sytrs", &(struct system){handle, n, nrhs, A, sim_shim_type_bits(dataTypeA), lda,
                                           ipiv, sizeof(*ipiv), B, ldb, bufferOnDevice,
                                           workspaceInBytesOnDevice, info});
}
