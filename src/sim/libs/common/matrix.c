#include "sim/libs/common/matrix.h"

size_t sim_shim_type_bits(cudaDataType_t type)
{
    switch (type) {
    case CUDA_R_4I:
    case CUDA_R_4U:
#if CUDART_VERSION >= 12080
    case CUDA_R_4F_E2M1:
#endif
        return 4;
    case CUDA_C_4I:
    case CUDA_C_4U:
    case CUDA_R_8I:
    case CUDA_R_8U:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
#if CUDART_VERSION >= 12080
    case CUDA_R_8F_UE8M0:
#endif
        return 8;
    case CUDA_C_8I:
    case CUDA_C_8U:
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_R_16I:
    case CUDA_R_16U:
        return 16;
    case CUDA_C_16F:
    case CUDA_C_16BF:
    case CUDA_C_16I:
    case CUDA_C_16U:
    case CUDA_R_32F:
    case CUDA_R_32I:
    case CUDA_R_32U:
        return 32;
    case CUDA_C_32F:
    case CUDA_C_32I:
    case CUDA_C_32U:
    case CUDA_R_64F:
    case CUDA_R_64I:
    case CUDA_R_64U:
        return 64;
    case CUDA_C_64F:
    case CUDA_C_64I:
    case CUDA_C_64U:
        return 128;
    default:
        return 0;
    }
}

/* Rates per nanosecond, measured on an H200. */
#define OPERATIONS_16 790000.0
#define MEMORY_BYTES  4300.0

/* The tensor cores read 16 bytes at once. */
#define ALIGNED_BITS 128

static bool is_empty(const struct sim_shim_matrix *matrix)
{
    return matrix->rows == 0 || matrix->columns == 0 || matrix->batch == 0;
}

/* The number of elements from the first in memory to the end of the last. False on overflow. */
static bool extent(const struct sim_shim_matrix *matrix, int64_t *ret_elements)
{
    int64_t stride = matrix->stride < 0 ? -matrix->stride : matrix->stride;
    int64_t columns;
    int64_t stack;
    int64_t elements;
    int64_t bits;

    if (__builtin_mul_overflow(matrix->columns - 1, matrix->ld, &columns) ||
        __builtin_mul_overflow(matrix->batch - 1, stride, &stack) ||
        __builtin_add_overflow(columns, stack, &elements) ||
        __builtin_add_overflow(elements, matrix->rows, &elements) ||
        __builtin_mul_overflow(elements, (int64_t)matrix->element_bits, &bits)) {
        return false;
    }
    *ret_elements = elements;
    return true;
}

bool sim_shim_matrix_is_valid(const struct sim_shim_matrix *matrix)
{
    int64_t elements;

    if (matrix->rows < 0 || matrix->columns < 0 || matrix->batch < 0 || matrix->element_bits == 0 ||
        matrix->ld < (matrix->rows > 1 ? matrix->rows : 1)) {
        return false;
    }
    return is_empty(matrix) || extent(matrix, &elements);
}

void sim_shim_add_matrix(struct sim_shim_work *work, const struct sim_shim_matrix *matrix,
                         bool written)
{
    const char *first = matrix->data;
    int64_t elements;
    size_t bytes;

    if (first == NULL || is_empty(matrix) || !extent(matrix, &elements)) {
        return;
    }
    if (matrix->stride < 0) {
        first += (matrix->batch - 1) * matrix->stride * (int64_t)matrix->element_bits / 8;
    }
    bytes = ((size_t)elements * matrix->element_bits + 7) / 8;
    if (written) {
        sim_shim_add_write(work, first, bytes);
    } else {
        sim_shim_add_read(work, first, bytes);
    }
}

enum spw_gpu_type sim_shim_type_of_bits(size_t element_bits, bool is_tf32)
{
    return element_bits >= 64   ? SPW_GPU_F64
           : element_bits >= 32 ? (is_tf32 ? SPW_GPU_TF32 : SPW_GPU_F32)
           : element_bits >= 16 ? SPW_GPU_BITS16
                                : SPW_GPU_BITS8;
}

void sim_shim_set_product_time(struct sim_shim_work *work, int64_t m, int64_t n, int64_t k,
                               int64_t batch, size_t element_bits, bool is_tf32)
{
    double operations = 2.0 * (double)m * (double)n * (double)k * (double)batch;
    double compute_ns = operations / (OPERATIONS_16 * 16 / (double)element_bits);
    double memory_ns = 0, bytes = 0;

    for (size_t i = 0; i < work->count; i++) {
        memory_ns += (double)work->ranges[i].bytes / MEMORY_BYTES;
        bytes += (double)work->ranges[i].bytes;
    }
    work->nanoseconds = (uint64_t)(compute_ns > memory_ns ? compute_ns : memory_ns) + 1;
    work->demand = (struct sim_demand){
        .work = SIM_WORK_PRODUCT,
        .type = sim_shim_type_of_bits(element_bits, is_tf32),
        .operations = (float)operations,
        .bytes = (float)bytes,
    };
}

void sim_shim_note_alignment(struct sim_shim_work *work, const struct sim_shim_matrix *matrix)
{
    if (matrix->columns > 1 && (uint64_t)matrix->ld * matrix->element_bits % ALIGNED_BITS != 0 &&
        work->demand.work == SIM_WORK_PRODUCT && work->demand.type >= SPW_GPU_TF32) {
        work->demand.work = SIM_WORK_UNALIGNED;
    }
}
