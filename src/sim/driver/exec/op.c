#include "sim/driver/exec/op.h"

#include <stdlib.h>

#include "common/grow.h"
#include "sim/driver/memory/content.h"

void *sim_op_new(const struct sim_op_class *class, size_t size, int device)
{
    struct sim_op *op = calloc(1, size);

    if (op != NULL) {
        op->class = class;
        op->refs = 1;
        op->device = device;
    }
    return op;
}

struct sim_op *sim_op_ref(struct sim_op *op)
{
    op->refs++;
    return op;
}

void sim_op_unref(struct sim_op *op)
{
    if (op == NULL || --op->refs > 0) {
        return;
    }
    if (op->class->fini != NULL) {
        op->class->fini(op);
    }
    free(op->spans);
    free(op->reaches);
    free(op);
}

struct sim_demand sim_op_demand(const struct sim_op *op)
{
    struct sim_demand demand = op->demand;

    for (size_t i = 0; demand.work == SIM_WORK_NAMED && i < op->span_count; i++) {
        demand.bytes += (float)op->spans[i].size;
    }
    return demand;
}

CUresult sim_op_add_span(struct sim_op *op, struct sim_span span)
{
    if (span.size == 0 || sim_mem_kind(span.address) == SIM_MEM_PAGEABLE) {
        return CUDA_SUCCESS;
    }
    if (!SPW_RESIZE(&op->spans, op->span_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->spans[op->span_count++] = span;
    return CUDA_SUCCESS;
}

CUresult sim_op_add_reach(struct sim_op *op, struct sim_reach reach)
{
    for (size_t i = 0; i < op->reach_count; i++) {
        if (op->reaches[i].address == reach.address) {
            return CUDA_SUCCESS;
        }
    }
    if (!SPW_RESIZE(&op->reaches, op->reach_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->reaches[op->reach_count++] = reach;
    return CUDA_SUCCESS;
}

static bool span_is_valid(const struct sim_span *span, int device)
{
    int owner;

    if (sim_mem_check(span->address, span->size, device, span->write) == CUDA_SUCCESS) {
        return true;
    }
    if (!span->owner_suffices) {
        return false;
    }
    owner = sim_mem_device(span->address);
    return owner >= 0 && owner != device &&
           sim_mem_check(span->address, span->size, owner, span->write) == CUDA_SUCCESS;
}

CUresult sim_op_check(const struct sim_op *op)
{
    for (size_t i = 0; i < op->span_count; i++) {
        if (!span_is_valid(&op->spans[i], op->device)) {
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
    }
    return CUDA_SUCCESS;
}

bool sim_op_uses(const struct sim_op *op, CUdeviceptr address, size_t size)
{
    for (size_t i = 0; i < op->span_count; i++) {
        const struct sim_span *span = &op->spans[i];

        if (span->address < address + size && address < span->address + span->size) {
            return true;
        }
    }
    return false;
}

uint64_t sim_op_poll(CUdeviceptr address, unsigned int size)
{
    uint64_t word = 0;

    if (sim_mem_kind(address) != SIM_MEM_PINNED) {
        sim_mem_read(&word, address, size);
    } else if (size == sizeof(uint32_t)) {
        word = __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
    } else {
        word = __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
    }
    return word;
}

CUresult sim_op_seal(struct sim_op *op, CUresult result, struct sim_op **ret_op)
{
    if (result == CUDA_SUCCESS && sim_op_check(op) != CUDA_SUCCESS) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        sim_op_unref(op);
        return result;
    }
    *ret_op = op;
    return CUDA_SUCCESS;
}

static const struct sim_op_class empty_class = {
    .name = "empty",
    .node_type = CU_GRAPH_NODE_TYPE_EMPTY,
};

struct sim_op *sim_op_new_empty(int device)
{
    return sim_op_new(&empty_class, sizeof(struct sim_op), device);
}

struct call_op {
    struct sim_op op;
    void (*run)(void *arg);
    void *arg;
};

static enum sim_outcome call_run(struct sim_op *op, struct sim_item *item)
{
    const struct call_op *call = (const struct call_op *)op;

    call->run(call->arg);
    return SIM_DONE;
}

static const struct sim_op_class call_class = {
    .name = "call",
    .node_type = CU_GRAPH_NODE_TYPE_EMPTY,
    .always = true,
    .run = call_run,
};

struct sim_op *sim_op_new_call(int device, void (*run)(void *arg), void *arg)
{
    struct call_op *call = sim_op_new(&call_class, sizeof(*call), device);

    if (call == NULL) {
        return NULL;
    }
    call->run = run;
    call->arg = arg;
    return &call->op;
}
