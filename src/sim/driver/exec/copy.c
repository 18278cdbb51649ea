#include "sim/driver/exec/copy.h"

#include <stdlib.h>

#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/core/spin.h"
#include "sim/driver/exec/crossing.h"
#include "sim/driver/memory/content.h"
#include "sim/driver/memory/mapping.h"

struct copy_op {
    struct sim_op op;
    struct sim_copy copy;
    unsigned char *staged; /* bytes of a pageable source, without gaps; NULL: the copy reads the
                            * source when it runs */
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

/* Bytes from the first to the last one, including gaps. */
static size_t extent(const struct sim_place *place, const struct sim_copy *copy)
{
    return (copy->depth - 1) * place->slice + (copy->height - 1) * place->pitch + copy->width;
}

static bool is_device_side(const struct sim_place *place)
{
    enum sim_mem_kind kind = sim_mem_kind(place->address);

    return kind == SIM_MEM_DEVICE || kind == SIM_MEM_MANAGED;
}

/* Records a copy to or from the host. */
static void note_transfer(const struct sim_copy *copy, int device)
{
    size_t bytes = copy->width * copy->height * copy->depth;
    bool is_known;

    if (is_device_side(&copy->dst) && !is_device_side(&copy->src)) {
        sim_spin_fed();
    }
    if (is_device_side(&copy->dst) || !is_device_side(&copy->src)) {
        return;
    }
    is_known = sim_mem_is_known(copy->src.address, extent(&copy->src, copy));
    sim_run_record_read(device, bytes, is_known);
    if (!is_known && bytes <= SIM_RECORD_SMALL) {
        sim_spin_read();
    }
}

static enum sim_outcome copy_run(struct sim_op *op, struct sim_item *item)
{
    const struct copy_op *self = (const struct copy_op *)op;
    const struct sim_copy *copy = &self->copy;
    const unsigned char *staged = self->staged;

    if (sim_crossing_check(op) != CUDA_SUCCESS) {
        return SIM_FAULT;
    }
    note_transfer(copy, op->device);
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
    sim_crossing_spoil(op, copy->dst.address + extent(&copy->dst, copy) - 1);
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

/* True if access by the device that owns the side's memory suffices. In a copy between devices,
 * this access suffices for memory of cuMemAlloc. In a peer copy, it suffices for all memory. */
static bool owner_may_do(const struct sim_copy *copy, const struct sim_place *side)
{
    const struct sim_mapping *mapping = sim_mapping_find(side->address);

    return sim_options()->reach == SPW_REACH_ANY || copy->peer ||
           !sim_mem_is_device(copy->dst.address) || !sim_mem_is_device(copy->src.address) ||
           mapping == NULL || mapping->kind == SIM_MAPPING_ALLOC;
}

static struct sim_span span_of(const struct sim_copy *copy, const struct sim_place *side)
{
    return (struct sim_span){side->address, extent(side, copy), side == &copy->dst,
                             owner_may_do(copy, side)};
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
    result = sim_op_add_span(&self->op, span_of(copy, &copy->dst));
    if (result == CUDA_SUCCESS) {
        result = sim_op_add_span(&self->op, span_of(copy, &copy->src));
    }
    if (result == CUDA_SUCCESS) {
        result = sim_crossing_check(&self->op);
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
