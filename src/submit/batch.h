/* Batches of copies. Each copy that crosses from device to host memory becomes several (parts.h).
 * The copies of a batch have no order among each other.
 *
 * Locking: as parts.h. A split batch is the caller's until it is ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"

/* The arguments of cuMemcpyBatchAsync that change. */
struct spw_batch {
    CUdeviceptr *to, *from;
    size_t *bytes;
    size_t count;
    size_t *firsts; /* for each of the attributes, the first copy that has it */
    size_t attributes;
    size_t *origins; /* of a split batch: the index of each copy in the original */
};

/* The arguments of cuMemcpy3DBatchAsync that change. */
struct spw_batch_3d {
    CUDA_MEMCPY3D_BATCH_OP *copies;
    size_t count;
    size_t *origins;
};

/* Reports to the pools that a batch on this stream uses their memory. To be called before it is
 * submitted. */
void spw_submit_batch_note(const struct spw_batch *batch, CUstream stream, bool per_thread);
void spw_submit_batch_note_3d(const struct spw_batch_3d *batch, CUstream stream, bool per_thread);

/* Splits a batch. False when no copy crosses, or without memory: then the batch stays as it is. */
bool spw_submit_batch_split(const struct spw_batch *batch, struct spw_batch *ret_split);
bool spw_submit_batch_split_3d(const struct spw_batch_3d *batch, struct spw_batch_3d *ret_split);

/* Frees a split batch. `failed` is the driver's index of the copy that failed, or SIZE_MAX; returns
 * it as an index of the original. */
size_t spw_submit_batch_end(struct spw_batch *split, size_t failed);
size_t spw_submit_batch_end_3d(struct spw_batch_3d *split, size_t failed);
