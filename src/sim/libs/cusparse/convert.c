/* Conversion and sorting of indices. Nothing is computed: launches only list the memory. */
#include "sim/libs/cusparse/matrix.h"

static size_t bytes_of(int count)
{
    return (size_t)(count > 0 ? count : 0) * sizeof(int);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseXcoo2csr(cusparseHandle_t handle, const int *cooRowInd,
                                                  int nnz, int m, int *csrSortedRowPtr,
                                                  cusparseIndexBase_t idxBase)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    if (nnz < 0 || m < 0) {
        return CUSPARSE_STATUS_INVALID_VALUE;
    }
    sim_shim_add_read(&work, cooRowInd, bytes_of(nnz));
    sim_shim_add_write(&work, csrSortedRowPtr, bytes_of(m + 1));
    return sim_cusparse_launch(handle, "coo2csr", &work);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseCreateIdentityPermutation(cusparseHandle_t handle, int n,
                                                                   int *p)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    sim_shim_add_write(&work, p, bytes_of(n));
    return sim_cusparse_launch(handle, "identity_permutation", &work);
}

/* Sorts the rows (unless NULL), the columns and the permutation in place. */
static cusparseStatus_t sort(cusparseHandle_t handle, int count, int *rows, int *columns,
                             int *permutation)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL) {
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    }
    sim_shim_add_write(&work, rows, bytes_of(count));
    sim_shim_add_write(&work, columns, bytes_of(count));
    sim_shim_add_write(&work, permutation, bytes_of(count));
    return sim_cusparse_launch(handle, "sort_indices", &work);
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseXcoosort_bufferSizeExt(cusparseHandle_t handle, int m,
                                                                int n, int nnz, const int *cooRowsA,
                                                                const int *cooColsA,
                                                                size_t *pBufferSizeInBytes)
{
    *pBufferSizeInBytes = 0;
    return handle != NULL ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}

SIM_SHIM_EXPORT cusparseStatus_t cusparseXcoosortByRow(cusparseHandle_t handle, int m, int n,
                                                       int nnz, int *cooRowsA, int *cooColsA,
                                                       int *P, void *pBuffer)
{
    return sort(handle, nnz, cooRowsA, cooColsA, P);
}

SIM_SHIM_SAME(cusparseXcsrsort_bufferSizeExt, cusparseXcoosort_bufferSizeExt);

SIM_SHIM_EXPORT cusparseStatus_t cusparseXcsrsort(cusparseHandle_t handle, int m, int n, int nnz,
                                                  const cusparseMatDescr_t descrA,
                                                  const int *csrRowPtrA, int *csrColIndA, int *P,
                                                  void *pBuffer)
{
    return sort(handle, nnz, NULL, csrColIndA, P);
}
