#include "sim/driver/exec/copy.h"

#include <stdlib.h>

#include "sim/driver/exec/schedule.h"
#include "sim/driver/memory/content.h"

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

CUresult sim_copy_stage(struct sim_op *op)
{
    struct copy_op *self = (struct copy_op *)op;
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
