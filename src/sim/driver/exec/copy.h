/* Copies, of one to three dimensions, between device, host and managed memory.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/exec/op.h"

/* One side of a copy: the address of the first byte, and the distances between rows and between
 * slices in bytes (unused for a single row or slice). */
struct sim_place {
    CUdeviceptr address;
    size_t pitch;
    size_t slice;
    bool may_be_pageable; /* true if this side may be ordinary host memory */
};

/* `width` bytes, `height` rows, `depth` slices; all at least 1 unless the copy is empty. */
struct sim_copy {
    struct sim_place dst;
    struct sim_place src;
    size_t width;
    size_t height;
    size_t depth;
    bool peer; /* a peer copy, which names the contexts of both sides */
};

/* A copy of `size` bytes in one row. */
struct sim_copy sim_copy_linear(CUdeviceptr dst, CUdeviceptr src, size_t size, bool pageable_dst,
                                bool pageable_src);

/* Creates the operation of a copy and checks both sides. CUDA_ERROR_INVALID_VALUE for an invalid
 * address or extent, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_copy_op_new(const struct sim_copy *copy, int device, struct sim_op **ret_op);

/* The copy of an operation of sim_copy_op_new(). */
const struct sim_copy *sim_copy_of_op(const struct sim_op *op);

/* Reads the source of a queued copy into a buffer of the operation, which then copies from that
 * buffer. Pageable sources require this, because the program may change them before the copy runs.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_copy_stage(struct sim_op *op);

/* Translates three-dimensional descriptions (copy_shape.c). CUDA_ERROR_NOT_SUPPORTED for arrays,
 * CUDA_ERROR_INVALID_VALUE. For a peer copy, `params` must not be NULL, and its contexts are
 * ignored. */
CUresult sim_copy_from_3d(const CUDA_MEMCPY3D *params, struct sim_copy *ret_copy);
CUresult sim_copy_from_3d_peer(const CUDA_MEMCPY3D_PEER *params, struct sim_copy *ret_copy);
