/* Batches of copies. A copy that crosses from device to host memory is replaced by several copies
 * (parts.h). The copies of a batch may run in any order.
 *
 * Locking: as parts.h. The caller owns a split batch until it calls spw_submit_batch_end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"

/* The arguments of cuMemcpyBatchAsync that splitting changes. */
struct spw_batch {
    CUdeviceptr *to, *from;
    size_t *bytes;
    size_t count;
    size_t *firsts; /* for each entry of the attributes, the first copy that uses it */
    size_t attributes;
    size_t *origins; /* of a split batch: the index of each copy in the original batch */
};

/* The arguments of cuMemcpy3DBatchAsync that splitting changes. */
struct spw_batch_3d {
    CUDA_MEMCPY3D_BATCH_OP *copies;
    size_t count;
    size_t *origins;
};

/* Report to the pools that a batch on this stream uses their memory. Must be called before the
 * batch is submitted. */
void spw_submit_batch_note(const struct spw_batch *batch, CUstream stream, bool per_thread);
void spw_submit_batch_note_3d(const struct spw_batch_3d *batch, CUstream stream, bool per_thread);

/* Split a batch. Return false if no copy crosses, or if there is no memory. The original batch must
 * then be used. */
bool spw_submit_batch_split(const struct spw_batch *batch, struct spw_batch *ret_split);
bool spw_submit_batch_split_3d(const struct spw_batch_3d *batch, struct spw_batch_3d *ret_split);

/* Free a split batch. `failed` is the driver's index of the copy that failed, or SIZE_MAX. Return
 * the index of that copy in the original batch. */
size_t spw_submit_batch_end(struct spw_batch *split, size_t failed);
size_t spw_submit_batch_end_3d(struct spw_batch_3d *split, size_t failed);
