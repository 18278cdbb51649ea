/* Products that involve a sparse matrix. */
#include "sim/libs/cusparse/matrix.h"

/* Returns a workspace of 0 bytes. handle.h explains this size. */
static cusparseStatus_t no_workspace(cusparseHandle_t handle, size_t *ret_bytes)
{
    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    *ret_bytes = 0;
    return CUSPARSE_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSpMM_bufferSize(
    cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB, const void *alpha,
    cusparseConstSpMatDescr_t matA, cusparseConstDnMatDescr_t matB, const void *beta,
    cusparseDnMatDescr_t matC, cudaDataType computeType, cusparseSpMMAlg_t alg, size_t *bufferSize)
{
    return no_workspace(handle, bufferSize);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t opA,
                                              cusparseOperation_t opB, const void *alpha,
                                              cusparseConstSpMatDescr_t matA,
                                              cusparseConstDnMatDescr_t matB, const void *beta,
                                              cusparseDnMatDescr_t matC, cudaDataType computeType,
                                              cusparseSpMMAlg_t alg, void *externalBuffer)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    if (matA == NULL || matB == NULL || matC == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    sim_cusparse_add_sparse(&work, matA, false);
    sim_cusparse_add_dense(&work, matB, false);
    sim_cusparse_add_dense(&work, matC, true);
    sim_cusparse_add_scalar(handle, &work, alpha, computeType);
    sim_cusparse_add_scalar(handle, &work, beta, computeType);
    return sim_cusparse_launch(handle, "spmm", &work);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSpMV_bufferSize(
    cusparseHandle_t handle, cusparseOperation_t opA, const void *alpha,
    cusparseConstSpMatDescr_t matA, cusparseConstDnVecDescr_t vecX, const void *beta,
    cusparseDnVecDescr_t vecY, cudaDataType computeType, cusparseSpMVAlg_t alg, size_t *bufferSize)
{
    return no_workspace(handle, bufferSize);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t opA,
                                              const void *alpha, cusparseConstSpMatDescr_t matA,
                                              cusparseConstDnVecDescr_t vecX, const void *beta,
                                              cusparseDnVecDescr_t vecY, cudaDataType computeType,
                                              cusparseSpMVAlg_t alg, void *externalBuffer)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    if (matA == NULL || vecX == NULL || vecY == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    sim_cusparse_add_sparse(&work, matA, false);
    sim_cusparse_add_vector(&work, vecX, false);
    sim_cusparse_add_vector(&work, vecY, true);
    sim_cusparse_add_scalar(handle, &work, alpha, computeType);
    sim_cusparse_add_scalar(handle, &work, beta, computeType);
    return sim_cusparse_launch(handle, "spmv", &work);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSDDMM_bufferSize(
    cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB, const void *alpha,
    cusparseConstDnMatDescr_t matA, cusparseConstDnMatDescr_t matB, const void *beta,
    cusparseSpMatDescr_t matC, cudaDataType computeType, cusparseSDDMMAlg_t alg, size_t *bufferSize)
{
    return no_workspace(handle, bufferSize);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSDDMM_preprocess(
    cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB, const void *alpha,
    cusparseConstDnMatDescr_t matA, cusparseConstDnMatDescr_t matB, const void *beta,
    cusparseSpMatDescr_t matC, cudaDataType computeType, cusparseSDDMMAlg_t alg,
    void *externalBuffer)
{
    return handle != NULL ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t opA,
                                               cusparseOperation_t opB, const void *alpha,
                                               cusparseConstDnMatDescr_t matA,
                                               cusparseConstDnMatDescr_t matB, const void *beta,
                                               cusparseSpMatDescr_t matC, cudaDataType computeType,
                                               cusparseSDDMMAlg_t alg, void *externalBuffer)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    if (matA == NULL || matB == NULL || matC == NULL) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    sim_cusparse_add_dense(&work, matA, false);
    sim_cusparse_add_dense(&work, matB, false);
    sim_cusparse_add_sparse(&work, matC, true);
    sim_cusparse_add_scalar(handle, &work, alpha, computeType);
    sim_cusparse_add_scalar(handle, &work, beta, computeType);
    return sim_cusparse_launch(handle, "sddmm", &work);
}
