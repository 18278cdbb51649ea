/* The memory of a matrix of a linear algebra library.
 *
 * Locking: none; a struct sim_shim_work belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <library_types.h>

#include "sim/libs/common/shim.h"

/* A batch of matrices in column-major order. `ld`: elements from the start of a column to the start
 * of the next; `stride`: elements from the start of a matrix to the start of the next. */
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

/* Returns true if the shape is valid and its size in bytes fits in an int64_t. */
bool sim_shim_matrix_is_valid(const struct sim_shim_matrix *matrix);

/* Sets the simulated duration and the demand of a batch of products of m x k and k x n matrices,
 * whose memory has been added. The duration is the longer of two times. The first is the time of
 * the arithmetic, at 790 TFLOP/s for elements of 16 bits, and in proportion for other sizes. The
 * second is the time to move the memory, at 4.3 TB/s. Both rates were measured on an H200.
 * `is_tf32`: float32 may be rounded. */
void sim_shim_set_product_time(struct sim_shim_work *work, int64_t m, int64_t n, int64_t k,
                               int64_t batch, size_t element_bits, bool is_tf32);

/* Marks the demand of a product as unaligned if the columns of the matrix do not begin at multiples
 * of 16 bytes. */
void sim_shim_note_alignment(struct sim_shim_work *work, const struct sim_shim_matrix *matrix);

/* The type of elements of that many bits. */
enum spw_gpu_type sim_shim_type_of_bits(size_t element_bits, bool is_tf32);

/* Adds the memory of a valid matrix to the work, as one range from its first byte to its last. Adds
 * nothing for a NULL or empty matrix. */
void sim_shim_add_matrix(struct sim_shim_work *work, const struct sim_shim_matrix *matrix,
                         bool written);
