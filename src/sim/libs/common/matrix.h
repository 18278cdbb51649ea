/* How much memory a matrix of a linear algebra library takes.
 *
 * Locking: none needed; pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <library_types.h>

#include "sim/libs/common/shim.h"

/* A stack of `batch` matrices, stored column by column, each column `ld` elements behind the one
 * before and each matrix `stride` elements. Memory between columns is not touched at the end. */
struct sim_shim_matrix {
    const void *data;
    size_t element_bits;
    int64_t rows;
    int64_t columns;
    int64_t ld;
    int64_t stride;
    int64_t batch;
};

/* Bits of an element; 0 for an unknown type. */
size_t sim_shim_type_bits(cudaDataType_t type);

/* Whether the shape makes sense and its end can be reported in bytes. */
bool sim_shim_matrix_is_valid(const struct sim_shim_matrix *matrix);

/* Says how long a stack of products of m x k and k x n matrices takes when time is simulated: their
 * operations at 790 TFLOP/s for elements of 16 bits, in proportion for others, or the memory named
 * so far at 4.3 TB/s. The rates are measurements of an H200. */
void sim_shim_set_product_time(struct sim_shim_work *work, int64_t m, int64_t n, int64_t k,
                               int64_t batch, size_t element_bits);

/* Names the memory of a valid matrix, one range from its first byte to its last. */
void sim_shim_add_matrix(struct sim_shim_work *work, const struct sim_shim_matrix *matrix,
                         bool written);
