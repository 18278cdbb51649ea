/* Copies, of one to three dimensions, between device, host and managed memory.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/op.h"
#include "sim/driver/stream.h"

/* One side of a copy: where the first byte is, and the bytes from one row and one slice to the next
 * (of no meaning for a single row or slice). */
struct sim_place {
    CUdeviceptr address;
    size_t pitch;
    size_t slice;
    bool may_be_pageable; /* ordinary host memory is allowed here */
};

/* `width` bytes, `height` rows, `depth` slices; all at least 1 except in a copy of nothing. */
struct sim_copy {
    struct sim_place dst;
    struct sim_place src;
    size_t width;
    size_t height;
    size_t depth;
};

/* When an asynchronous or synchronous copy returns to the host. */
enum sim_copy_mode {
    SIM_COPY_ASYNC,
    SIM_COPY_SYNC, /* as cuMemcpy: see the section on synchronous behaviour in cuda.h's guide */
};

/* A copy of `size` bytes in one row. */
struct sim_copy sim_copy_linear(CUdeviceptr dst, CUdeviceptr src, size_t size, bool pageable_dst,
                                bool pageable_src);

/* The operation of a copy; both sides are checked. CUDA_ERROR_INVALID_VALUE for an address or
 * extent that is not valid, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_copy_op_new(const struct sim_copy *copy, int device, struct sim_op **ret_op);

/* The copy such an operation was made from. */
const struct sim_copy *sim_copy_of_op(const struct sim_op *op);

/* Does a copy in the stream. The lock may be released if the call has to wait. */
CUresult sim_copy_submit(struct sim_stream *stream, const struct sim_copy *copy,
                         enum sim_copy_mode mode);

/* Translates a three-dimensional description (copy3d.c). CUDA_ERROR_NOT_SUPPORTED for arrays,
 * CUDA_ERROR_INVALID_VALUE. */
CUresult sim_copy_from_3d(const CUDA_MEMCPY3D *params, struct sim_copy *ret_copy);
