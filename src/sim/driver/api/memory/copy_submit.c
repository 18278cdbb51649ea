#include "sim/driver/api/memory/copy_submit.h"

#include "sim/driver/core/spin.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/memory/content.h"

static bool is_pageable(const struct sim_place *place)
{
    return sim_mem_kind(place->address) == SIM_MEM_PAGEABLE;
}

static bool is_device_side(const struct sim_place *place)
{
    enum sim_mem_kind kind = sim_mem_kind(place->address);

    return kind == SIM_MEM_DEVICE || kind == SIM_MEM_MANAGED;
}

static bool is_read_by_host(const struct sim_copy *copy)
{
    return is_device_side(&copy->src) && !is_device_side(&copy->dst);
}

/* True if the call waits until the copy is done. An asynchronous copy waits only if its destination
 * is pageable. A synchronous copy does not wait if it stays within device memory. It also does not
 * wait if it copies from pageable to device memory, because the source is staged. */
static bool must_wait(const struct sim_copy *copy, enum sim_copy_mode mode)
{
    if (mode == SIM_COPY_ASYNC) {
        return is_pageable(&copy->dst);
    }
    if (is_device_side(&copy->dst)) {
        return !is_device_side(&copy->src) && !is_pageable(&copy->src);
    }
    return true;
}

/* Submits the copy to the stream. If the copy does not run immediately, stages a pageable source. A
 * graph node reads the source at each launch instead. */
static CUresult submit_staged(struct sim_stream *stream, struct sim_op *op)
{
    CUresult result = sim_submit(stream, op);
    bool is_queued = op->refs > 1 && !sim_stream_is_capturing(stream);

    if (result != CUDA_SUCCESS || !is_queued || !is_pageable(&sim_copy_of_op(op)->src)) {
        return result;
    }
    return sim_copy_stage(op) == CUDA_SUCCESS ? CUDA_SUCCESS : sim_submit_wait(stream);
}

CUresult sim_copy_submit(struct sim_stream *stream, const struct sim_copy *copy,
                         enum sim_copy_mode mode)
{
    struct sim_op *op;
    bool wait;
    CUresult result = sim_capture_admit(stream);

    if (result == CUDA_SUCCESS && mode == SIM_COPY_SYNC) {
        result = sim_capture_forbids_sync(stream);
    }
    if (result != CUDA_SUCCESS || copy->width == 0 || copy->height == 0 || copy->depth == 0) {
        return result;
    }
    /* A synchronous copy from pageable memory synchronises before it reads the source. */
    if (mode == SIM_COPY_SYNC && is_pageable(&copy->src)) {
        result = sim_submit_wait(stream);
    }
    if (result == CUDA_SUCCESS) {
        result = sim_copy_op_new(copy, sim_stream_device(stream), &op);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (is_read_by_host(copy) && sim_spin_is_endless()) {
        sim_op_unref(op);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    wait = !sim_stream_is_capturing(stream) && must_wait(copy, mode);
    result = submit_staged(stream, op);
    sim_op_unref(op);
    return result == CUDA_SUCCESS && wait ? sim_submit_wait(stream) : result;
}
