/* Dot products and matrix-vector products. */
#include "sim/libs/cublas/handle.h"

static cublasStatus_t dot(cublasHandle_t handle, int64_t n, const void *x, size_t x_bytes,
                          int64_t incx, const void *y, size_t y_bytes, int64_t incy, void *result,
                          size_t result_bytes)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (result == NULL || x_bytes == 0 || y_bytes == 0 || result_bytes == 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n > 0) {
        sim_cublas_add_vector(&work, x, x_bytes, n, incx, false);
        sim_cublas_add_vector(&work, y, y_bytes, n, incy, false);
    }
    sim_cublas_add_result(handle, &work, result, result_bytes);
    return sim_cublas_launch(handle, "dot", &work);
}

#define DOT(suffix, integer, name, type)                                                           \
    SIM_SHIM_EXPORT cublasStatus_t cublas##name##_v2##suffix(                                      \
        cublasHandle_t handle, integer n, const type *x, integer incx, const type *y,              \
        integer incy, type *result)                                                                \
    {                                                                                              \
        return dot(handle, n, x, sizeof(type), incx, y, sizeof(type), incy, result, sizeof(type)); \
    }

SIM_CUBLAS_BOTH_WIDTHS(DOT, Sdot, float)
SIM_CUBLAS_BOTH_WIDTHS(DOT, Ddot, double)
SIM_CUBLAS_BOTH_WIDTHS(DOT, Cdotu, cuComplex)
SIM_CUBLAS_BOTH_WIDTHS(DOT, Cdotc, cuComplex)
SIM_CUBLAS_BOTH_WIDTHS(DOT, Zdotu, cuDoubleComplex)
SIM_CUBLAS_BOTH_WIDTHS(DOT, Zdotc, cuDoubleComplex)

#define DOT_EX(suffix, integer, name)                                                              \
    SIM_SHIM_EXPORT cublasStatus_t name##suffix(                                                   \
        cublasHandle_t handle, integer n, const void *x, cudaDataType xType, integer incx,         \
        const void *y, cudaDataType yType, integer incy, void *result, cudaDataType resultType,    \
        cudaDataType executionType)                                                                \
    {                                                                                              \
        return dot(handle, n, x, sim_shim_type_bits(xType) / 8, incx, y,                           \
                   sim_shim_type_bits(yType) / 8, incy, result,                                    \
                   sim_shim_type_bits(resultType) / 8);                                            \
    }

SIM_CUBLAS_BOTH_WIDTHS(DOT_EX, cublasDotEx)
SIM_CUBLAS_BOTH_WIDTHS(DOT_EX, cublasDotcEx)

struct matrix_vector {
    cublasOperation_t trans;
    int64_t m, n;
    const void *alpha, *a;
    int64_t lda;
    const void *x;
    int64_t incx;
    const void *beta, *y;
    int64_t incy;
    size_t element_bytes;
};

static cublasStatus_t multiply(cublasHandle_t handle, const struct matrix_vector *p)
{
    bool transposed = p->trans != CUBLAS_OP_N;
    struct sim_shim_matrix a = {
        .data = p->a,
        .element_bits = p->element_bytes * 8,
        .rows = p->m,
        .columns = p->n,
        .ld = p->lda,
        .batch = 1,
    };
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!sim_shim_matrix_is_valid(&a) || p->incx == 0 || p->incy == 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (p->m == 0 || p->n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    sim_shim_add_matrix(&work, &a, false);
    sim_cublas_add_vector(&work, p->x, p->element_bytes, transposed ? p->m : p->n, p->incx, false);
    sim_cublas_add_vector(&work, p->y, p->element_bytes, transposed ? p->n : p->m, p->incy, true);
    sim_cublas_add_scalar(handle, &work, p->alpha, p->element_bytes);
    sim_cublas_add_scalar(handle, &work, p->beta, p->element_bytes);
    return sim_cublas_launch(handle, "gemv", &work);
}

#define GEMV(suffix, integer, letter, type)                                                        \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##gemv_v2##suffix(                                \
        cublasHandle_t handle, cublasOperation_t trans, integer m, integer n, const type *alpha,   \
        const type *A, integer lda, const type *x, integer incx, const type *beta, type *y,        \
        integer incy)                                                                              \
    {                                                                                              \
        return multiply(handle, &(struct matrix_vector){trans, m, n, alpha, A, lda, x, incx, beta, \
                                                        y, incy, sizeof(type)});                   \
    }

SIM_CUBLAS_ALL_TYPES(GEMV)
