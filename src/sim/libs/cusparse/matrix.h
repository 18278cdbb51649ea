/* Descriptors of sparse and dense matrices and of dense vectors.
 *
 * Locking: a descriptor is used by one thread at a time, as the library documents. */
#pragma once

#include "sim/libs/cusparse/handle.h"

/* A sparse matrix in coordinate (COO) or compressed row (CSR) format. */
struct cusparseSpMatDescr {
    int64_t rows, columns, count;
    void *row_indices; /* CSR: the offsets of the rows */
    void *column_indices;
    void *values;
    int64_t row_index_count;
    size_t row_index_bytes;    /* bytes of one row index */
    size_t column_index_bytes; /* bytes of one column index */
    cudaDataType type;
    int64_t batch;
    int64_t offsets_stride; /* elements from a matrix of the batch to the next */
    int64_t values_stride;  /* elements from a matrix of the batch to the next */
};

struct cusparseDnMatDescr {
    struct sim_shim_matrix matrix; /* the transposed matrix if its order is row-major */
    int64_t rows, columns;
};

struct cusparseDnVecDescr {
    void *values;
    int64_t size;
    cudaDataType type;
};

/* Add the memory of a matrix or vector to the work. For a sparse matrix, `written` applies to the
 * values only. */
void sim_cusparse_add_sparse(struct sim_shim_work *work, const struct cusparseSpMatDescr *matrix,
                             bool written);
void sim_cusparse_add_dense(struct sim_shim_work *work, const struct cusparseDnMatDescr *matrix,
                            bool written);
void sim_cusparse_add_vector(struct sim_shim_work *work, const struct cusparseDnVecDescr *vector,
                             bool written);
