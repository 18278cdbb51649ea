/* Matrix products: all the gemm functions. */
#include "sim/libs/cublas/handle.h"

/* A matrix of a product, without its size. */
struct operand {
    const void *data;
    size_t element_bits;
    int64_t ld;
    int64_t stride;
};

struct product {
    cublasOperation_t transa, transb;
    int64_t m, n, k;
    struct operand a, b, c;
    int64_t batch;
    const void *alpha, *beta;
    size_t scalar_bytes;
};

static struct sim_shim_matrix stored(const struct operand *operand, bool transposed, int64_t rows,
                                     int64_t columns, int64_t batch)
{
    return (struct sim_shim_matrix){
        .data = operand->data,
        .element_bits = operand->element_bits,
        .rows = transposed ? columns : rows,
        .columns = transposed ? rows : columns,
        .ld = operand->ld,
        .stride = operand->stride,
        .batch = batch,
    };
}

static cublasStatus_t multiply(cublasHandle_t handle, const struct product *p)
{
    struct sim_shim_matrix a = stored(&p->a, p->transa != CUBLAS_OP_N, p->m, p->k, p->batch);
    struct sim_shim_matrix b = stored(&p->b, p->transb != CUBLAS_OP_N, p->k, p->n, p->batch);
    struct sim_shim_matrix c = stored(&p->c, false, p->m, p->n, p->batch);
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!sim_shim_matrix_is_valid(&a) || !sim_shim_matrix_is_valid(&b) ||
        !sim_shim_matrix_is_valid(&c)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (p->m == 0 || p->n == 0 || p->batch == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    sim_shim_add_matrix(&work, &a, false);
    sim_shim_add_matrix(&work, &b, false);
    sim_shim_add_matrix(&work, &c, true);
    sim_shim_set_product_time(&work, p->m, p->n, p->k, p->batch, p->a.element_bits,
                              handle->math_mode == CUBLAS_TF32_TENSOR_OP_MATH);
    sim_shim_note_alignment(&work, &a);
    sim_shim_note_alignment(&work, &b);
    sim_shim_note_alignment(&work, &c);
    sim_cublas_add_scalar(handle, &work, p->alpha, p->scalar_bytes);
    sim_cublas_add_scalar(handle, &work, p->beta, p->scalar_bytes);
    return sim_cublas_launch(handle, "gemm", &work);
}

/* A batch given as arrays of matrix addresses. The arrays are in device memory and not read here,
 * so only the arrays are added, not the matrices. */
static cublasStatus_t multiply_arrays(cublasHandle_t handle, const void *a, const void *b,
                                      const void *c, int64_t batch)
{
    struct sim_shim_work work = {.count = 0};
    size_t bytes = (size_t)batch * sizeof(void *);

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (batch < 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    sim_shim_add_read(&work, a, bytes);
    sim_shim_add_read(&work, b, bytes);
    sim_shim_add_read(&work, c, bytes);
    return sim_cublas_launch(handle, "gemm_batched", &work);
}

/* Bytes of alpha and beta. */
static size_t scale_bytes(cublasComputeType_t compute, cudaDataType_t c)
{
    size_t real = 4;

    if (compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC) {
        real = 2;
    } else if (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC) {
        real = 8;
    }
    return c == CUDA_C_32F || c == CUDA_C_64F ? 2 * real : real;
}

#define BITS(type) (sizeof(type) * 8)

/* The product of a function whose parameters have cuBLAS's names. */
#define PRODUCT(a_bits, b_bits, c_bits, a_stride, b_stride, c_stride, matrices, bytes)             \
    &(struct product)                                                                              \
    {                                                                                              \
        .transa = transa, .transb = transb, .m = m, .n = n, .k = k,                                \
        .a = {A, a_bits, lda, a_stride}, .b = {B, b_bits, ldb, b_stride},                          \
        .c = {C, c_bits, ldc, c_stride}, .batch = matrices, .alpha = alpha, .beta = beta,          \
        .scalar_bytes = bytes                                                                      \
    }

#define GEMM(suffix, integer, letter, type)                                                        \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##gemm_v2##suffix(                                \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const type *alpha, const type *A, integer lda, const type *B,        \
        integer ldb, const type *beta, type *C, integer ldc)                                       \
    {                                                                                              \
        return multiply(handle,                                                                    \
                        PRODUCT(BITS(type), BITS(type), BITS(type), 0, 0, 0, 1, sizeof(type)));    \
    }

#define GEMM_STRIDED(suffix, integer, letter, type)                                                \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                     \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const type *alpha, const type *A, integer lda,                       \
        long long int strideA, const type *B, integer ldb, long long int strideB,                  \
        const type *beta, type *C, integer ldc, long long int strideC, integer batchCount)         \
    {                                                                                              \
        return multiply(handle, PRODUCT(BITS(type), BITS(type), BITS(type), strideA, strideB,      \
                                        strideC, batchCount, sizeof(type)));                       \
    }

#define GEMM_BATCHED(suffix, integer, letter, type)                                                \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##gemmBatched##suffix(                            \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const type *alpha, const type *const Aarray[], integer lda,          \
        const type *const Barray[], integer ldb, const type *beta, type *const Carray[],           \
        integer ldc, integer batchCount)                                                           \
    {                                                                                              \
        return multiply_arrays(handle, Aarray, Barray, Carray, batchCount);                        \
    }

SIM_CUBLAS_ALL_TYPES(GEMM)
SIM_CUBLAS_ALL_TYPES(GEMM_STRIDED)
SIM_CUBLAS_ALL_TYPES(GEMM_BATCHED)

/* cublasSgemmEx and cublasCgemmEx: elements of any type, scalars of type `type`. */
#define GEMM_TYPED(suffix, integer, letter, type)                                                  \
    SIM_SHIM_EXPORT cublasStatus_t cublas##letter##gemmEx##suffix(                                 \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const type *alpha, const void *A, cudaDataType Atype, integer lda,   \
        const void *B, cudaDataType Btype, integer ldb, const type *beta, void *C,                 \
        cudaDataType Ctype, integer ldc)                                                           \
    {                                                                                              \
        return multiply(handle, PRODUCT(sim_shim_type_bits(Atype), sim_shim_type_bits(Btype),      \
                                        sim_shim_type_bits(Ctype), 0, 0, 0, 1, sizeof(type)));     \
    }

SIM_CUBLAS_BOTH_WIDTHS(GEMM_TYPED, S, float)
SIM_CUBLAS_BOTH_WIDTHS(GEMM_TYPED, C, cuComplex)

#define GEMM_EX(suffix, integer, unused)                                                           \
    SIM_SHIM_EXPORT cublasStatus_t cublasGemmEx##suffix(                                           \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const void *alpha, const void *A, cudaDataType Atype, integer lda,   \
        const void *B, cudaDataType Btype, integer ldb, const void *beta, void *C,                 \
        cudaDataType Ctype, integer ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo)   \
    {                                                                                              \
        return multiply(handle, PRODUCT(sim_shim_type_bits(Atype), sim_shim_type_bits(Btype),      \
                                        sim_shim_type_bits(Ctype), 0, 0, 0, 1,                     \
                                        scale_bytes(computeType, Ctype)));                         \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublasGemmStridedBatchedEx##suffix(                             \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const void *alpha, const void *A, cudaDataType Atype, integer lda,   \
        long long int strideA, const void *B, cudaDataType Btype, integer ldb,                     \
        long long int strideB, const void *beta, void *C, cudaDataType Ctype, integer ldc,         \
        long long int strideC, integer batchCount, cublasComputeType_t computeType,                \
        cublasGemmAlgo_t algo)                                                                     \
    {                                                                                              \
        return multiply(handle, PRODUCT(sim_shim_type_bits(Atype), sim_shim_type_bits(Btype),      \
                                        sim_shim_type_bits(Ctype), strideA, strideB, strideC,      \
                                        batchCount, scale_bytes(computeType, Ctype)));             \
    }                                                                                              \
    SIM_SHIM_EXPORT cublasStatus_t cublasGemmBatchedEx##suffix(                                    \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, integer m,      \
        integer n, integer k, const void *alpha, const void *const Aarray[], cudaDataType Atype,   \
        integer lda, const void *const Barray[], cudaDataType Btype, integer ldb,                  \
        const void *beta, void *const Carray[], cudaDataType Ctype, integer ldc,                   \
        integer batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo)                \
    {                                                                                              \
        return multiply_arrays(handle, Aarray, Barray, Carray, batchCount);                        \
    }

SIM_CUBLAS_BOTH_WIDTHS(GEMM_EX, )
