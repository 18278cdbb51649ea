#include "sim/libs/cusparse/matrix.h"

#include <stdlib.h>

static size_t index_bytes(cusparseIndexType_t type)
{
    switch ((int)type) {
    case CUSPARSE_INDEX_32I:
        return 4;
    case CUSPARSE_INDEX_64I:
        return 8;
    default:
        return 0;
    }
}

static cusparseStatus_t create(cusparseSpMatDescr_t *ret_matrix,
                               const struct cusparseSpMatDescr *content)
{
    if (ret_matrix == NULL || content->rows < 0 || content->columns < 0 || content->count < 0 ||
        content->row_index_bytes == 0 || content->column_index_bytes == 0 ||
        sim_shim_type_bits(content->type) == 0) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *ret_matrix = malloc(sizeof(**ret_matrix));
    if (*ret_matrix == NULL) {
        return CUSPARSE_STATUS_ALLOC_FAILED;
    }
    **ret_matrix = *content;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCreateCsr(
    cusparseSpMatDescr_t *spMatDescr, int64_t rows, int64_t cols, int64_t nnz, void *csrRowOffsets,
    void *csrColInd, void *csrValues, cusparseIndexType_t csrRowOffsetsType,
    cusparseIndexType_t csrColIndType, cusparseIndexBase_t idxBase, cudaDataType valueType)
{
    return create(spMatDescr, &(struct cusparseSpMatDescr){
                                  .rows = rows,
                                  .columns = cols,
                                  .count = nnz,
                                  .row_indices = csrRowOffsets,
                                  .column_indices = csrColInd,
                                  .values = csrValues,
                                  .row_index_count = rows + 1,
                                  .row_index_bytes = index_bytes(csrRowOffsetsType),
                                  .column_index_bytes = index_bytes(csrColIndType),
                                  .type = valueType,
                                  .batch = 1,
                              });
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t *spMatDescr, int64_t rows,
                                                   int64_t cols, int64_t nnz, void *cooRowInd,
                                                   void *cooColInd, void *cooValues,
                                                   cusparseIndexType_t cooIdxType,
                                                   cusparseIndexBase_t idxBase,
                                                   cudaDataType valueType)
{
    return create(spMatDescr, &(struct cusparseSpMatDescr){
                                  .rows = rows,
                                  .columns = cols,
                                  .count = nnz,
                                  .row_indices = cooRowInd,
                                  .column_indices = cooColInd,
                                  .values = cooValues,
                                  .row_index_count = nnz,
                                  .row_index_bytes = index_bytes(cooIdxType),
                                  .column_index_bytes = index_bytes(cooIdxType),
                                  .type = valueType,
                                  .batch = 1,
                              });
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t spMatDescr,
                                                        void *csrRowOffsets, void *csrColInd,
                                                        void *csrValues)
{
    if (spMatDescr == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    spMatDescr->row_indices = csrRowOffsets;
    spMatDescr->column_indices = csrColInd;
    spMatDescr->values = csrValues;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t spMatDescr,
                                                            int batchCount,
                                                            int64_t offsetsBatchStride,
                                                            int64_t columnsValuesBatchStride)
{
    if (spMatDescr == NULL || batchCount < 1 || offsetsBatchStride < 0 ||
        columnsValuesBatchStride < 0) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    spMatDescr->batch = batchCount;
    spMatDescr->offsets_stride = offsetsBatchStride;
    spMatDescr->values_stride = columnsValuesBatchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t spMatDescr,
                                                      int64_t *rows, int64_t *cols, int64_t *nnz)
{
    if (spMatDescr == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *rows = spMatDescr->rows;
    *cols = spMatDescr->columns;
    *nnz = spMatDescr->count;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t spMatDescr,
                                                           cusparseSpMatAttribute_t attribute,
                                                           void *data, size_t dataSize)
{
    return spMatDescr != NULL ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t spMatDescr)
{
    free((void *)spMatDescr);
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *dnMatDescr, int64_t rows,
                                                     int64_t cols, int64_t ld, void *values,
                                                     cudaDataType valueType, cusparseOrder_t order)
{
    bool by_row = order == CUSPARSE_ORDER_ROW;
    struct sim_shim_matrix matrix = {.data = values,
                                     .element_bits = sim_shim_type_bits(valueType),
                                     .rows = by_row ? cols : rows,
                                     .columns = by_row ? rows : cols,
                                     .ld = ld,
                                     .batch = 1};

    if (dnMatDescr == NULL || !sim_shim_matrix_is_valid(&matrix)) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *dnMatDescr = malloc(sizeof(**dnMatDescr));
    if (*dnMatDescr == NULL) {
        return CUSPARSE_STATUS_ALLOC_FAILED;
    }
    **dnMatDescr = (struct cusparseDnMatDescr){matrix, rows, cols};
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t dnMatDescr,
                                                              int batchCount, int64_t batchStride)
{
    if (dnMatDescr == NULL || batchCount < 1 || batchStride < 0) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    dnMatDescr->matrix.batch = batchCount;
    dnMatDescr->matrix.stride = batchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t dnMatDescr)
{
    free((void *)dnMatDescr);
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *dnVecDescr, int64_t size,
                                                     void *values, cudaDataType valueType)
{
    if (dnVecDescr == NULL || size < 0 || sim_shim_type_bits(valueType) == 0) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    *dnVecDescr = malloc(sizeof(**dnVecDescr));
    if (*dnVecDescr == NULL) {
        return CUSPARSE_STATUS_ALLOC_FAILED;
    }
    **dnVecDescr = (struct cusparseDnVecDescr){values, size, valueType};
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t dnVecDescr)
{
    free((void *)dnVecDescr);
    return CUSPARSE_STATUS_SUCCESS;
}

static size_t batch_bytes(int64_t count, int64_t batch, int64_t stride, size_t bits)
{
    return ((size_t)count + (size_t)((batch - 1) * stride)) * bits / 8;
}

void sim_cusparse_add_sparse(struct sim_shim_work *work, const struct cusparseSpMatDescr *matrix,
                             bool written)
{
    size_t values = batch_bytes(matrix->count, matrix->batch, matrix->values_stride,
                                sim_shim_type_bits(matrix->type));

    sim_shim_add_read(work, matrix->row_indices,
                      batch_bytes(matrix->row_index_count, matrix->batch, matrix->offsets_stride,
                                  matrix->row_index_bytes * 8));
    sim_shim_add_read(work, matrix->column_indices,
                      batch_bytes(matrix->count, matrix->batch, matrix->values_stride,
                                  matrix->column_index_bytes * 8));
    if (written) {
        sim_shim_add_write(work, matrix->values, values);
    } else {
        sim_shim_add_read(work, matrix->values, values);
    }
}

void sim_cusparse_add_dense(struct sim_shim_work *work, const struct cusparseDnMatDescr *matrix,
                            bool written)
{
    sim_shim_add_matrix(work, &matrix->matrix, written);
}

void sim_cusparse_add_vector(struct sim_shim_work *work, const struct cusparseDnVecDescr *vector,
                             bool written)
{
    size_t bytes = (size_t)vector->size * sim_shim_type_bits(vector->type) / 8;

    if (written) {
        sim_shim_add_write(work, vector->values, bytes);
    } else {
        sim_shim_add_read(work, vector->values, bytes);
    }
}
