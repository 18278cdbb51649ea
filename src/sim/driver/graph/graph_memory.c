#include "sim/driver/graph/graph_memory.h"

#include <stdlib.h>

#include "common/bounds.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/memory/alloc.h"

/* One allocation, shared by its allocation and free nodes in all graphs. A live allocation holds a
 * reference to itself, because the memory outlives its graph until the memory is freed, regardless
 * of the instantiation flags (programming guide). */
struct graph_memory {
    struct graph_memory *next;
    unsigned int refs;
    struct sim_device *device;
    CUdeviceptr address;
    size_t size;
    bool has_free_node;
    bool live; /* allocated by a launch and not freed since */
};

static struct graph_memory *memories; /* list of all */
static struct sim_graph_usage usages[SPW_DEVICES_MAX];

static void usage_add(cuuint64_t *current, cuuint64_t *high, size_t size)
{
    *current += size;
    if (*current > *high) {
        *high = *current;
    }
}

static void memory_unref(struct graph_memory *memory)
{
    struct graph_memory **place = &memories;

    if (--memory->refs > 0) {
        return;
    }
    while (*place != memory) {
        place = &(*place)->next;
    }
    *place = memory->next;
    usages[memory->device->ordinal].reserved -= memory->size;
    sim_mem_driver_free(memory->address);
    free(memory);
}

static void set_live(struct graph_memory *memory, bool live)
{
    struct sim_graph_usage *usage = &usages[memory->device->ordinal];

    if (memory->live == live) {
        return;
    }
    memory->live = live;
    if (live) {
        usage_add(&usage->used, &usage->used_high, memory->size);
        memory->refs++;
    } else {
        usage->used -= memory->size;
        memory_unref(memory);
    }
}

static struct graph_memory *find(CUdeviceptr address)
{
    struct graph_memory *memory = memories;

    while (memory != NULL && memory->address != address) {
        memory = memory->next;
    }
    return memory;
}

struct memory_op {
    struct sim_op op;
    struct graph_memory *memory; /* a reference */
};

static struct graph_memory *memory_of(const struct sim_op *op)
{
    return ((const struct memory_op *)op)->memory;
}

static CUresult alloc_launch(struct sim_op *op, struct sim_stream *stream)
{
    set_live(memory_of(op), true);
    return sim_schedule_submit(stream, op, NULL);
}

static CUresult free_launch(struct sim_op *op, struct sim_stream *stream)
{
    set_live(memory_of(op), false);
    return sim_schedule_submit(stream, op, NULL);
}

static void alloc_fini(struct sim_op *op)
{
    memory_unref(memory_of(op));
}

/* Clears has_free_node, because after a failed capture the free node may be freed before the
 * allocation node. */
static void free_fini(struct sim_op *op)
{
    memory_of(op)->has_free_node = false;
    memory_unref(memory_of(op));
}

static const struct sim_op_class alloc_class = {
    .name = "alloc",
    .node_type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    .launch = alloc_launch,
    .fini = alloc_fini,
};

static const struct sim_op_class free_class = {
    .name = "free",
    .node_type = CU_GRAPH_NODE_TYPE_MEM_FREE,
    .launch = free_launch,
    .fini = free_fini,
};

CUresult sim_graph_alloc_op_new(struct sim_device *device, size_t size, struct sim_op **ret_op,
                                CUdeviceptr *ret_address)
{
    struct sim_graph_usage *usage = &usages[device->ordinal];
    struct graph_memory *memory = calloc(1, sizeof(*memory));
    struct memory_op *op = sim_op_new(&alloc_class, sizeof(*op), device->ordinal);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (memory != NULL && op != NULL) {
        result = sim_mem_driver_alloc(device, size, &memory->address);
    }
    if (result != CUDA_SUCCESS) {
        free(memory);
        free(op);
        return result;
    }
    memory->refs = 1;
    memory->device = device;
    memory->size = size;
    memory->next = memories;
    memories = memory;
    usage_add(&usage->reserved, &usage->reserved_high, size);
    op->memory = memory;
    *ret_op = &op->op;
    *ret_address = memory->address;
    return CUDA_SUCCESS;
}

CUresult sim_graph_free_op_new(CUdeviceptr address, struct sim_op **ret_op)
{
    struct graph_memory *memory = find(address);
    struct memory_op *op;

    if (memory == NULL || memory->has_free_node) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    op = sim_op_new(&free_class, sizeof(*op), memory->device->ordinal);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->refs++;
    memory->has_free_node = true;
    op->memory = memory;
    *ret_op = &op->op;
    return CUDA_SUCCESS;
}

CUdeviceptr sim_graph_memory_address(const struct sim_op *op)
{
    return memory_of(op)->address;
}

size_t sim_graph_memory_size(const struct sim_op *op)
{
    return memory_of(op)->size;
}

bool sim_graph_has_live_memory(const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct sim_op *op = graph->nodes[i]->op;

        if (op->class == &alloc_class && memory_of(op)->live) {
            return true;
        }
    }
    return false;
}

void sim_graph_free_live_memory(const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct sim_op *op = graph->nodes[i]->op;

        if (op->class == &alloc_class) {
            set_live(memory_of(op), false);
        }
    }
}

bool sim_graph_has_memory_nodes(const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        if (sim_op_is_graph_memory(graph->nodes[i]->op)) {
            return true;
        }
    }
    return false;
}

CUresult sim_graph_memory_release(CUdeviceptr address)
{
    struct graph_memory *memory = find(address);

    if (memory == NULL || !memory->live) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    set_live(memory, false);
    return CUDA_SUCCESS;
}

CUresult sim_capture_mem_alloc(struct sim_stream *stream, size_t size, CUdeviceptr *ret_address)
{
    CUdeviceptr address;
    struct sim_op *op;
    CUresult result = sim_capture_admit(stream);

    if (result == CUDA_SUCCESS) {
        result = sim_graph_alloc_op_new(stream->ctx->device, size, &op, &address);
    }
    if (result == CUDA_SUCCESS) {
        result = sim_submit_new(stream, op);
    }
    if (result == CUDA_SUCCESS) {
        *ret_address = address;
    }
    return result;
}

CUresult sim_capture_mem_free(struct sim_stream *stream, CUdeviceptr address)
{
    struct sim_op *op;
    CUresult result = sim_capture_admit(stream);

    if (result == CUDA_SUCCESS) {
        result = sim_graph_free_op_new(address, &op);
    }
    return result == CUDA_SUCCESS ? sim_submit_new(stream, op) : result;
}

struct sim_graph_usage *sim_graph_usage_of(CUdevice device)
{
    return &usages[device];
}
