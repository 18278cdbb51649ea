#include "sim/driver/copy.h"

#include <stdlib.h>

#include "sim/driver/capture.h"
#include "sim/driver/fit.h"
#include "sim/driver/memory.h"
#include "sim/driver/schedule.h"
#include "sim/driver/submit.h"

struct copy_op {
    struct sim_op op;
    struct sim_copy copy;
    unsigned char *staged; /* a pageable source's bytes, without gaps; NULL: read when it runs */
};

struct sim_copy sim_copy_linear(CUdeviceptr dst, CUdeviceptr src, size_t size, bool pageable_dst,
                                bool pageable_src)
{
    return (struct sim_copy){
        .dst = {.address = dst, .may_be_pageable = pageable_dst},
        .src = {.address = src, .may_be_pageable = pageable_src},
        .width = size,
        .height = 1,
        .depth = 1,
    };
}

static CUdeviceptr row_address(const struct sim_place *place, size_t y, size_t z)
{
    return place->address + z * place->slice + y * place->pitch;
}

/* Bytes from the first to behind the last. */
static size_t extent(const struct sim_place *place, const struct sim_copy *copy)
{
    return (copy->depth - 1) * place->slice + (copy->height - 1) * place->pitch + copy->width;
}

static enum sim_outcome copy_run(struct sim_op *op, struct sim_item *item)
{
    const struct copy_op *self = (const struct copy_op *)op;
    const struct sim_copy *copy = &self->copy;
    const unsigned char *staged = self->staged;

    for (size_t z = 0; z < copy->depth; z++) {
        for (size_t y = 0; y < copy->height; y++) {
            if (staged != NULL) {
                sim_mem_write(row_address(&copy->dst, y, z), staged, copy->width);
                staged += copy->width;
            } else {
                sim_mem_copy(row_address(&copy->dst, y, z), row_address(&copy->src, y, z),
                             copy->width);
            }
        }
    }
    return SIM_DONE;
}

static void copy_fini(struct sim_op *op)
{
    free(((struct copy_op *)op)->staged);
}

static const struct sim_op_class copy_class = {
    .name = "copy",
    .node_type = CU_GRAPH_NODE_TYPE_MEMCPY,
    .run = copy_run,
    .fini = copy_fini,
};

static bool is_pageable(const struct sim_place *place)
{
    return sim_mem_kind(place->address) == SIM_MEM_PAGEABLE;
}

/* Reads the source now, as the call has to that was given it. */
static CUresult stage_source(struct copy_op *self)
{
    const struct sim_copy *copy = &self->copy;
    unsigned char *to;

    self->staged = malloc(copy->width * copy->height * copy->depth);
    if (self->staged == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    to = self->staged;
    for (size_t z = 0; z < copy->depth; z++) {
        for (size_t y = 0; y < copy->height; y++) {
            sim_mem_read(to, row_address(&copy->src, y, z), copy->width);
            to += copy->width;
        }
    }
    return CUDA_SUCCESS;
}

static bool is_well_formed(const struct sim_copy *copy)
{
    const struct sim_place *sides[] = {&copy->dst, &copy->src};

    for (size_t i = 0; i < 2; i++) {
        const struct sim_place *side = sides[i];

        if ((copy->height > 1 && side->pitch < copy->width) ||
            (copy->depth > 1 && side->slice < copy->height * side->pitch) || side->address == 0 ||
            (!side->may_be_pageable && is_pageable(side))) {
            return false;
        }
    }
    return true;
}

CUresult sim_copy_op_new(const struct sim_copy *copy, int device, struct sim_op **ret_op)
{
    struct copy_op *self;
    CUresult result;

    if (!is_well_formed(copy)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    self = sim_op_new(&copy_class, sizeof(*self), device);
    if (self == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    self->copy = *copy;
    result = sim_op_add_span(
        &self->op, (struct sim_span){copy->dst.address, extent(&copy->dst, copy), true, true});
    if (result == CUDA_SUCCESS) {
        result = sim_op_add_span(
            &self->op, (struct sim_span){copy->src.address, extent(&copy->src, copy), false, true});
    }
    return sim_op_seal(&self->op, result, ret_op);
}

const struct sim_copy *sim_copy_of_op(const struct sim_op *op)
{
    return &((const struct copy_op *)op)->copy;
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

/* Whether the call returns only when the copy is done. Asynchronous copies wait for nothing but a
 * pageable destination; synchronous ones do not wait within device memory, nor for the second half
 * of a copy from pageable memory, which is staged. */
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

/* Gives the copy to the stream. Where the source is pageable and the copy did not run at once, the
 * source is kept; the node of a graph reads it at each launch. */
static CUresult submit_staged(struct sim_stream *stream, struct copy_op *self)
{
    CUresult result = sim_submit(stream, &self->op);
    bool is_queued = self->op.refs > 1 && !sim_stream_is_capturing(stream);

    if (result != CUDA_SUCCESS || !is_queued || !is_pageable(&self->copy.src)) {
        return result;
    }
    return stage_source(self) == CUDA_SUCCESS ? CUDA_SUCCESS : sim_submit_wait(stream);
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
    wait = !sim_stream_is_capturing(stream) && must_wait(copy, mode);
    if (!sim_stream_is_capturing(stream) && is_read_by_host(copy)) {
        sim_fit_read(sim_stream_device(stream), copy->width * copy->height * copy->depth);
    }
    result = submit_staged(stream, (struct copy_op *)op);
    sim_op_unref(op);
    return result == CUDA_SUCCESS && wait ? sim_submit_wait(stream) : result;
}
