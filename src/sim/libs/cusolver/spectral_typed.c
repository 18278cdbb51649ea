/* Eigenvalues and singular values: the older functions, one for each element type. */
#include "sim/libs/cusolver/spectral.h"

static struct sim_shim_matrix stack(const void *data, size_t bits, int64_t rows, int64_t columns,
                                    int64_t ld, int64_t batch)
{
    return (struct sim_shim_matrix){data, bits, rows, columns, ld, ld * columns, batch};
}

/* The number of singular vectors that `job` asks for: `all`, `some` (as many as values), or 0.
 * Vectors that overwrite the matrix are not counted. */
static int64_t wanted(signed char job, int64_t all, int64_t some)
{
    if (job == 'A') {
        return all;
    }
    return job == 'S' ? some : 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* An estimate: Jacobi's method keeps a copy of the matrix, and the vectors. */
static int64_t jacobi_elements(int64_t rows, int64_t columns, int64_t batch)
{
    return batch * (rows * columns + (rows + columns) * smaller(rows, columns));
}

#define AREA(problem_area, elements, type)                                                         \
    .area = (problem_area), .area_bytes = (size_t)(elements) * sizeof(type)

#define SYMMETRIC(letter, orthogonal, symmetric, type, real)                                       \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##symmetric##evd_bufferSize(                \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,           \
        const type *A, int lda, const real *W, int *lwork)                                         \
    {                                                                                              \
        return sim_cusolver_workspace_elements(                                                    \
            handle, sim_cusolver_symmetric_elements(n, jobz == CUSOLVER_EIG_MODE_VECTOR), lwork);  \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##symmetric##evd(                           \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, type *A,  \
        int lda, real *W, type *work, int lwork, int *info)                                        \
    {                                                                                              \
        return sim_cusolver_spectral_launch(                                                       \
            "syevd",                                                                               \
            &(struct sim_cusolver_spectral){.handle = handle,                                      \
                                            .a = stack(A, SIM_CUSOLVER_BITS(type), n, n, lda, 1),  \
                                            .values = W,                                           \
                                            .value_bits = SIM_CUSOLVER_BITS(real),                 \
                                            .value_count = n,                                      \
                                            AREA(work, lwork, type),                               \
                                            .info = info});                                        \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##symmetric##evj_bufferSize(                \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,           \
        const type *A, int lda, const real *W, int *lwork, syevjInfo_t params)                     \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, jacobi_elements(n, n, 1), lwork);           \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##symmetric##evj(                           \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, type *A,  \
        int lda, real *W, type *work, int lwork, int *info, syevjInfo_t params)                    \
    {                                                                                              \
        return cusolverDn##letter##symmetric##evd(handle, jobz, uplo, n, A, lda, W, work, lwork,   \
                                                  info);                                           \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##symmetric##evjBatched_bufferSize(         \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,           \
        const type *A, int lda, const real *W, int *lwork, syevjInfo_t params, int batchSize)      \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, jacobi_elements(n, n, batchSize), lwork);   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##symmetric##evjBatched(                    \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, type *A,  \
        int lda, real *W, type *work, int lwork, int *info, syevjInfo_t params, int batchSize)     \
    {                                                                                              \
        return sim_cusolver_spectral_launch(                                                       \
            "syevj_batched", &(struct sim_cusolver_spectral){                                      \
                                 .handle = handle,                                                 \
                                 .a = stack(A, SIM_CUSOLVER_BITS(type), n, n, lda, batchSize),     \
                                 .values = W,                                                      \
                                 .value_bits = SIM_CUSOLVER_BITS(real),                            \
                                 .value_count = n,                                                 \
                                 .value_stride = n,                                                \
                                 AREA(work, lwork, type),                                          \
                                 .info = info});                                                   \
    }

SIM_CUSOLVER_ALL_TYPES(SYMMETRIC)

#define GESVD(letter, orthogonal, symmetric, type, real)                                           \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvd_bufferSize(                         \
        cusolverDnHandle_t handle, int m, int n, int *lwork)                                       \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, sim_cusolver_singular_elements(m, n),       \
                                               lwork);                                             \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvd(                                    \
        cusolverDnHandle_t handle, signed char jobu, signed char jobvt, int m, int n, type *A,     \
        int lda, real *S, type *U, int ldu, type *VT, int ldvt, type *work, int lwork,             \
        real *rwork, int *info)                                                                    \
    {                                                                                              \
        int64_t left = wanted(jobu, m, smaller(m, n));                                             \
        int64_t right = wanted(jobvt, n, smaller(m, n));                                           \
                                                                                                   \
        return sim_cusolver_spectral_launch(                                                       \
            "gesvd",                                                                               \
            &(struct sim_cusolver_spectral){                                                       \
                .handle = handle,                                                                  \
                .a = stack(A, SIM_CUSOLVER_BITS(type), m, n, lda, 1),                              \
                .values = S,                                                                       \
                .value_bits = SIM_CUSOLVER_BITS(real),                                             \
                .value_count = smaller(m, n),                                                      \
                .left = stack(left > 0 ? U : NULL, SIM_CUSOLVER_BITS(type), m, left, ldu, 1),      \
                .right = stack(right > 0 ? VT : NULL, SIM_CUSOLVER_BITS(type), right, n, ldvt, 1), \
                AREA(work, lwork, type),                                                           \
                .info = info});                                                                    \
    }

SIM_CUSOLVER_ALL_TYPES(GESVD)

#define GESVDJ(letter, orthogonal, symmetric, type, real)                                          \
    static cusolverStatus_t letter##jacobi(cusolverDnHandle_t handle, cusolverEigMode_t jobz,      \
                                           int econ, int m, int n, type *A, int lda, real *S,      \
                                           type *U, int ldu, type *V, int ldv, type *work,         \
                                           int lwork, int *info, int batch)                        \
    {                                                                                              \
        bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR;                                           \
        int64_t few = smaller(m, n);                                                               \
                                                                                                   \
        return sim_cusolver_spectral_launch(                                                       \
            "gesvdj", &(struct sim_cusolver_spectral){                                             \
                          .handle = handle,                                                        \
                          .a = stack(A, SIM_CUSOLVER_BITS(type), m, n, lda, batch),                \
                          .values = S,                                                             \
                          .value_bits = SIM_CUSOLVER_BITS(real),                                   \
                          .value_count = few,                                                      \
                          .value_stride = few,                                                     \
                          .left = stack(vectors ? U : NULL, SIM_CUSOLVER_BITS(type), m,            \
                                        econ ? few : m, ldu, batch),                               \
                          .right = stack(vectors ? V : NULL, SIM_CUSOLVER_BITS(type), n,           \
                                         econ ? few : n, ldv, batch),                              \
                          AREA(work, lwork, type),                                                 \
                          .info = info});                                                          \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvdj_bufferSize(                        \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n, const type *A,  \
        int lda, const real *S, const type *U, int ldu, const type *V, int ldv, int *lwork,        \
        gesvdjInfo_t params)                                                                       \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, jacobi_elements(m, n, 1), lwork);           \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvdj(                                   \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n, type *A,        \
        int lda, real *S, type *U, int ldu, type *V, int ldv, type *work, int lwork, int *info,    \
        gesvdjInfo_t params)                                                                       \
    {                                                                                              \
        return letter##jacobi(handle, jobz, econ, m, n, A, lda, S, U, ldu, V, ldv, work, lwork,    \
                              info, 1);                                                            \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvdjBatched_bufferSize(                 \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, const type *A, int lda,   \
        const real *S, const type *U, int ldu, const type *V, int ldv, int *lwork,                 \
        gesvdjInfo_t params, int batchSize)                                                        \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, jacobi_elements(m, n, batchSize), lwork);   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvdjBatched(                            \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, type *A, int lda,         \
        real *S, type *U, int ldu, type *V, int ldv, type *work, int lwork, int *info,             \
        gesvdjInfo_t params, int batchSize)                                                        \
    {                                                                                              \
        return letter##jacobi(handle, jobz, 0, m, n, A, lda, S, U, ldu, V, ldv, work, lwork, info, \
                              batchSize);                                                          \
    }

SIM_CUSOLVER_ALL_TYPES(GESVDJ)

/* Sets the norms of the residuals, which are in host memory, to 0. */
static void clear(double *norms, int count)
{
    for (int i = 0; norms != NULL && i < count; i++) {
        norms[i] = 0;
    }
}

#define GESVDA(letter, orthogonal, symmetric, type, real)                                          \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvdaStridedBatched_bufferSize(          \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int rank, int m, int n,                 \
        const type *d_A, int lda, long long int strideA, const real *d_S, long long int strideS,   \
        const type *d_U, int ldu, long long int strideU, const type *d_V, int ldv,                 \
        long long int strideV, int *lwork, int batchSize)                                          \
    {                                                                                              \
        return sim_cusolver_workspace_elements(handle, jacobi_elements(m, n, batchSize), lwork);   \
    }                                                                                              \
    SIM_SHIM_EXPORT cusolverStatus_t cusolverDn##letter##gesvdaStridedBatched(                     \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int rank, int m, int n,                 \
        const type *d_A, int lda, long long int strideA, real *d_S, long long int strideS,         \
        type *d_U, int ldu, long long int strideU, type *d_V, int ldv, long long int strideV,      \
        type *d_work, int lwork, int *d_info, double *h_R_nrmF, int batchSize)                     \
    {                                                                                              \
        bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR;                                           \
                                                                                                   \
        clear(h_R_nrmF, batchSize);                                                                \
        return sim_cusolver_spectral_launch(                                                       \
            "gesvda", &(struct sim_cusolver_spectral){                                             \
                          .handle = handle,                                                        \
                          .a = {d_A, SIM_CUSOLVER_BITS(type), m, n, lda, strideA, batchSize},      \
                          .values = d_S,                                                           \
                          .value_bits = SIM_CUSOLVER_BITS(real),                                   \
                          .value_count = rank,                                                     \
                          .value_stride = strideS,                                                 \
                          .left = {vectors ? d_U : NULL, SIM_CUSOLVER_BITS(type), m, rank, ldu,    \
                                   strideU, batchSize},                                            \
                          .right = {vectors ? d_V : NULL, SIM_CUSOLVER_BITS(type), n, rank, ldv,   \
                                    strideV, batchSize},                                           \
                          AREA(d_work, lwork, type),                                               \
                          .info = d_info});                                                        \
    }

SIM_CUSOLVER_ALL_TYPES(GESVDA)
