#include "sim/driver/exec/memset.h"

#include "sim/driver/exec/crossing.h"
#include "sim/driver/memory/content.h"

struct memset_op {
    struct sim_op op;
    CUDA_MEMSET_NODE_PARAMS params;
};

/* Bytes from the first to the last one, including gaps. */
static size_t span_of(const CUDA_MEMSET_NODE_PARAMS *params)
{
    return (params->height - 1) * params->pitch + params->width * params->elementSize;
}

static enum sim_outcome memset_run(struct sim_op *op, struct sim_item *item)
{
    const CUDA_MEMSET_NODE_PARAMS *params = &((const struct memset_op *)op)->params;

    if (sim_crossing_check(op) != CUDA_SUCCESS) {
        return SIM_FAULT;
    }
    for (size_t y = 0; y < params->height; y++) {
        sim_mem_fill(params->dst + y * params->pitch, params->value, params->elementSize,
                     params->width * params->elementSize);
    }
    sim_crossing_spoil(op, params->dst + span_of(params) - 1);
    return SIM_DONE;
}

static const struct sim_op_class memset_class = {
    .name = "memset",
    .node_type = CU_GRAPH_NODE_TYPE_MEMSET,
    .run = memset_run,
};

static bool is_well_formed(const CUDA_MEMSET_NODE_PARAMS *params)
{
    size_t element = params->elementSize;

    if ((element != 1 && element != 2 && element != 4) || params->dst == 0 ||
        params->dst % element != 0 || sim_mem_kind(params->dst) == SIM_MEM_PAGEABLE) {
        return false;
    }
    return params->height <= 1 ||
           (params->pitch % element == 0 && params->pitch >= params->width * element);
}

CUresult sim_memset_op_new(const CUDA_MEMSET_NODE_PARAMS *params, int device,
                           struct sim_op **ret_op)
{
    struct memset_op *self;
    CUresult result;

    if (!is_well_formed(params)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    self = sim_op_new(&memset_class, sizeof(*self), device);
    if (self == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    self->params = *params;
    result =
        sim_op_add_span(&self->op, (struct sim_span){params->dst, span_of(params), true, true});
    if (result == CUDA_SUCCESS) {
        result = sim_crossing_check(&self->op);
    }
    return sim_op_seal(&self->op, result, ret_op);
}

const CUDA_MEMSET_NODE_PARAMS *sim_memset_of_op(const struct sim_op *op)
{
    return &((const struct memset_op *)op)->params;
}
