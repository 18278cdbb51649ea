/* cublasLtMatmul() and the heuristics that choose its algorithm. There is one algorithm, and it
 * needs no workspace. The workspace of the real algorithms is not documented. It is at most the
 * size that the caller prefers, and PyTorch always allocates this size. */
#include <stdlib.h>
#include <string.h>

#include "sim/libs/common/matrix.h"
#include "sim/libs/cublasLt/descriptors.h"

/* Bits of cublasLtEpilogue_t. AUX: an auxiliary matrix. DRELU, DGELU, BGRAD: a backward pass. BIAS:
 * the bias is added. BGRADA, BGRADB: the gradient of the bias is computed. */
#define EPILOGUE_BIAS   4U
#define EPILOGUE_DRELU  8U
#define EPILOGUE_BGRAD  16U
#define EPILOGUE_DGELU  64U
#define EPILOGUE_AUX    128U
#define EPILOGUE_BGRADA 256U
#define EPILOGUE_BGRADB 512U
#define EPILOGUE_RELU   2U

static struct sim_shim_matrix matrix_of(const void *data, cublasLtMatrixLayout_t opaque)
{
    const struct sim_cublaslt_layout *layout = sim_cublaslt_layout_of(opaque);
    bool by_row = layout->order == CUBLASLT_ORDER_ROW;

    return (struct sim_shim_matrix){
        .data = data,
        .element_bits = sim_shim_type_bits(layout->type),
        .rows = (int64_t)(by_row ? layout->columns : layout->rows),
        .columns = (int64_t)(by_row ? layout->rows : layout->columns),
        .ld = layout->ld,
        .stride = layout->stride,
        .batch = layout->batch,
    };
}

/* Tiled layouts and batches given as arrays of addresses are not simulated. */
static bool is_simulated(cublasLtMatrixLayout_t opaque)
{
    const struct sim_cublaslt_layout *layout = sim_cublaslt_layout_of(opaque);

    return (layout->order == CUBLASLT_ORDER_COL || layout->order == CUBLASLT_ORDER_ROW) &&
           layout->batch_mode == 0;
}

static cublasStatus_t check(cublasLtMatmulDesc_t desc, const cublasLtMatrixLayout_t *layouts,
                            size_t count)
{
    if (desc == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        struct sim_shim_matrix matrix;

        if (layouts[i] == NULL) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        if (!is_simulated(layouts[i])) {
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
        matrix = matrix_of(NULL, layouts[i]);
        if (!sim_shim_matrix_is_valid(&matrix)) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Returns true if op(A) times op(B) has the shape of D. */
static bool shapes_fit(const struct sim_cublaslt_matmul *desc, const struct sim_cublaslt_layout *a,
                       const struct sim_cublaslt_layout *b, const struct sim_cublaslt_layout *d)
{
    bool a_turned = desc->transa != CUBLAS_OP_N;
    bool b_turned = desc->transb != CUBLAS_OP_N;

    return (a_turned ? a->columns : a->rows) == d->rows &&
           (b_turned ? b->rows : b->columns) == d->columns &&
           (a_turned ? a->rows : a->columns) == (b_turned ? b->columns : b->rows);
}

/* Adds the bias or its gradient; both are as long as a side of D. */
static void add_bias(struct sim_shim_work *work, const struct sim_cublaslt_matmul *desc,
                     const struct sim_cublaslt_layout *d)
{
    uint64_t length = desc->epilogue & EPILOGUE_BGRADB ? d->columns : d->rows;
    cudaDataType_t type = desc->bias_type < 0 ? d->type : desc->bias_type;
    size_t bytes = length * sim_shim_type_bits(type) / 8;

    if (desc->epilogue & (EPILOGUE_BGRAD | EPILOGUE_BGRADA | EPILOGUE_BGRADB)) {
        sim_shim_add_write(work, desc->bias, bytes);
    } else if (desc->epilogue & EPILOGUE_BIAS) {
        sim_shim_add_read(work, desc->bias, bytes);
    }
}

/* Adds the auxiliary matrix that the forward pass keeps for the backward pass: a bit per element
 * for ReLU, the input for GELU. */
static void add_auxiliary(struct sim_shim_work *work, const struct sim_cublaslt_matmul *desc,
                          const struct sim_cublaslt_layout *d)
{
    bool relu = (desc->epilogue & (EPILOGUE_RELU | EPILOGUE_DRELU)) != 0;
    cudaDataType_t type = desc->aux_type < 0 ? d->type : desc->aux_type;
    struct sim_shim_matrix auxiliary = {
        .data = desc->aux,
        .element_bits = relu ? 1 : sim_shim_type_bits(type),
        .rows = (int64_t)d->rows,
        .columns = (int64_t)d->columns,
        .ld = desc->aux_ld,
        .stride = desc->aux_stride,
        .batch = d->batch,
    };

    if (desc->epilogue & EPILOGUE_AUX) {
        sim_shim_add_matrix(work, &auxiliary,
                            (desc->epilogue & (EPILOGUE_DRELU | EPILOGUE_DGELU)) == 0);
    }
}

/* Adds one byte per scale, for every scaling mode. */
static void add_scales(struct sim_shim_work *work, const struct sim_cublaslt_matmul *desc)
{
    const void *read[] = {desc->a_scale, desc->b_scale, desc->c_scale, desc->d_scale,
                          desc->aux_scale};
    void *written[] = {desc->amax, desc->aux_amax, desc->d_out_scale};

    for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
        sim_shim_add_read(work, read[i], 1);
    }
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        sim_shim_add_write(work, written[i], 1);
    }
}

static void add_scalars(struct sim_shim_work *work, const struct sim_cublaslt_matmul *desc,
                        const void *alpha, const void *beta, uint64_t rows)
{
    size_t bytes = sim_shim_type_bits(desc->scale_type) / 8;
    bool vector = desc->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR ||
                  desc->pointer_mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO ||
                  desc->pointer_mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST;

    if (desc->pointer_mode == CUBLASLT_POINTER_MODE_HOST) {
        return;
    }
    sim_shim_add_read(work, alpha, vector ? rows * bytes : bytes);
    if (desc->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE ||
        desc->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR) {
        sim_shim_add_read(work, beta, vector ? rows * bytes : bytes);
    }
}

/* Sets the duration of the product, whose operands have been added. */
static void set_time(struct sim_shim_work *work, const struct sim_cublaslt_matmul *desc,
                     const struct sim_shim_matrix *a, const struct sim_cublaslt_layout *d)
{
    int64_t k = desc->transa != CUBLAS_OP_N ? a->rows : a->columns;

    sim_shim_set_product_time(work, (int64_t)d->rows, (int64_t)d->columns, k, a->batch,
                              a->element_bits, desc->compute_type == CUBLAS_COMPUTE_32F_FAST_TF32);
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void *alpha,
    const void *A, cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc,
    const void *beta, const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
    cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
    size_t workspaceSizeInBytes, cudaStream_t stream)
{
    cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};
    const void *operands[] = {A, B, C, D};
    cublasStatus_t status = check(computeDesc, layouts, 4);
    struct sim_shim_work work = {.count = 0};
    struct sim_shim_matrix matrices[4];
    const struct sim_cublaslt_matmul *desc;
    const struct sim_cublaslt_layout *d;

    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    desc = sim_cublaslt_matmul_of(computeDesc);
    d = sim_cublaslt_layout_of(Ddesc);
    if (!shapes_fit(desc, sim_cublaslt_layout_of(Adesc), sim_cublaslt_layout_of(Bdesc), d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (size_t i = 0; i < 4; i++) {
        matrices[i] = matrix_of(operands[i], layouts[i]);
        sim_shim_add_matrix(&work, &matrices[i], i == 3);
    }
    set_time(&work, desc, &matrices[0], d);
    for (size_t i = 0; i < 4; i++) {
        sim_shim_note_alignment(&work, &matrices[i]);
    }
    add_bias(&work, desc, d);
    add_auxiliary(&work, desc, d);
    add_scales(&work, desc);
    add_scalars(&work, desc, alpha, beta, d->rows);
    sim_shim_add_write(&work, workspace, workspaceSizeInBytes);
    return sim_shim_launch("matmul", &work, stream) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount)
{
    cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};
    cublasStatus_t status = check(operationDesc, layouts, 4);

    if (requestedAlgoCount < 1 || heuristicResultsArray == NULL || returnAlgoCount == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *returnAlgoCount = 0;
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    memset(&heuristicResultsArray[0], 0, sizeof(heuristicResultsArray[0]));
    heuristicResultsArray[0].wavesCount = 1.0F;
    *returnAlgoCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    int count;

    return cublasLtMatmulAlgoGetHeuristic(lightHandle, operationDesc, Adesc, Bdesc, Cdesc, Ddesc,
                                          NULL, 1, result, &count);
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle)
{
    if (lightHandle == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (sim_shim_context() != CUDA_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    /* A handle is only a unique address. */
    *lightHandle = malloc(1);
    return *lightHandle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

SIM_SHIM_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle)
{
    free(lightHandle);
    return CUBLAS_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

SIM_SHIM_EXPORT size_t cublasLtGetCudartVersion(void)
{
    return CUDA_VERSION;
}
