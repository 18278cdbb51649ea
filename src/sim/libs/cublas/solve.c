/* Triangular systems and batched factorisations. A status in host memory is set to success. */
#include "sim/libs/cublas/handle.h"

static cublasStatus_t solve(cublasHandle_t handle, cublasSideMode_t side, int64_t m, int64_t n,
                            const void *alpha, const void *a, int64_t lda, void *b, int64_t ldb,
                            size_t element_bytes)
{
    int64_t order = side == CUBLAS_SIDE_LEFT ? m : n;
    struct sim_shim_matrix system = {a, element_bytes * 8, order, order, lda, 0, 1};
    struct sim_shim_matrix sides = {b, element_bytes * 8, m, n, ldb, 0, 1};
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!sim_shim_matrix_is_valid(&system) || !sim_shim_matrix_is_valid(&sides)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    sim_shim_add_matrix(&work, &system, false);
    sim_shim_add_matrix(&work, &sides, true);
    sim_cublas_add_scalar(handle, &work, alpha, element_bytes);
    return sim_cublas_launch(handle, "trsm", &work);
}

/* The known memory of a batched function: arrays of matrix addresses and arrays of int. Both arrays
 * are in device memory and are not read here, so the matrices are not known. */
struct arrays {
    const void *addresses[2];
    const int *pivots;
    int *written[2];
    int64_t order; /* pivots per matrix */
    int64_t batch;
    int *host_info; /* NULL: none */
};

static cublasStatus_t factorise(cublasHandle_t handle, const char *kernel, const struct arrays *p)
{
    struct sim_shim_work work = {.count = 0};
    size_t batch = (size_t)p->batch;

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (p->batch < 0 || p->order < 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (size_t i = 0; i < 2; i++) {
        sim_shim_add_read(&work, p->addresses[i], batch * sizeof(void *));
    }
    sim_shim_add_read(&work, p->pivots, batch * (size_t)p->order * sizeof(int));
    sim_shim_add_write(&work, p->written[0], batch * (size_t)p->order * sizeof(int));
    sim_shim_add_write(&work, p->written[1], batch * sizeof(int));
    if (p->host_info != NULL) {
        *p->host_info = 0;
    }
    return sim_cublas_launch(handle, kernel, &work);
}

#define TRSM(suffix, integer, letter, type)                                                        \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##trsm_v2##suffix(                                \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,                       \
        cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n, const type *alpha,   \
        const type *A, integer lda, type *B, integer ldb)                                          \
    {                                                                                              \
        return solve(handle, side, m, n, alpha, A, lda, B, ldb, sizeof(type));                     \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##trsmBatched##suffix(                            \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,                       \
        cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n, const type *alpha,   \
        const type *const A[], integer lda, type *const B[], integer ldb, integer batchCount)      \
    {                                                                                              \
        return factorise(handle, "trsm_batched",                                                   \
                         &(struct arrays){.addresses = {A, B}, .batch = batchCount});              \
    }

SIM_CUBLAS_ALL_TYPES(TRSM)

#define FACTORISE(letter, type)                                                                    \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##getrfBatched(                                   \
        cublasHandle_t handle, int n, type *const A[], int lda, int *P, int *info, int batchSize)  \
    {                                                                                              \
        return factorise(                                                                          \
            handle, "getrf_batched",                                                               \
            &(struct arrays){                                                                      \
                .addresses = {A}, .written = {P, info}, .order = n, .batch = batchSize});          \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##getrsBatched(                                   \
        cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs,                           \
        const type *const Aarray[], int lda, const int *devIpiv, type *const Barray[], int ldb,    \
        int *info, int batchSize)                                                                  \
    {                                                                                              \
        return factorise(handle, "getrs_batched",                                                  \
                         &(struct arrays){.addresses = {Aarray, Barray},                           \
                                          .pivots = devIpiv,                                       \
                                          .order = n,                                              \
                                          .batch = batchSize,                                      \
                                          .host_info = info});                                     \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##geqrfBatched(                                   \
        cublasHandle_t handle, int m, int n, type *const Aarray[], int lda,                        \
        type *const TauArray[], int *info, int batchSize)                                          \
    {                                                                                              \
        return factorise(handle, "geqrf_batched",                                                  \
                         &(struct arrays){.addresses = {Aarray, TauArray},                         \
                                          .batch = batchSize,                                      \
                                          .host_info = info});                                     \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##gelsBatched(                                    \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, int nrhs,                    \
        type *const Aarray[], int lda, type *const Carray[], int ldc, int *info,                   \
        int *devInfoArray, int batchSize)                                                          \
    {                                                                                              \
        return factorise(handle, "gels_batched",                                                   \
                         &(struct arrays){.addresses = {Aarray, Carray},                           \
                                          .written = {NULL, devInfoArray},                         \
                                          .batch = batchSize,                                      \
                                          .host_info = info});                                     \
    }

FACTORISE(S, float)
FACTORISE(D, double)
FACTORISE(C, cuComplex)
FACTORISE(Z, cuDoubleComplex)
