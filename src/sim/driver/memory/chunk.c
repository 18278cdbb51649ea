#include "sim/driver/memory/chunk.h"

#include <stdlib.h>

#include "common/grow.h"
#include "sim/driver/core/budget.h"
#include "sim/driver/core/run_record.h"

#define LABEL_MAGIC UINT64_C(0x676e6c6c69707373)

/* The label of an exported file. */
struct label {
    uint64_t magic;
    int32_t location_type;
    int32_t location_id; /* of a device: its index on the machine */
};

struct slot {
    struct sim_chunk *chunk;
    uint32_t generation; /* detects stale handles */
    uint32_t next_free;
};

static struct slot *slots; /* handles: generation in the upper half, slot number + 1 in the lower */
static uint32_t slot_count;
static uint32_t slot_capacity;
static uint32_t free_slot = UINT32_MAX;

unsigned long long sim_buffer_id(void)
{
    static unsigned long long last;

    return ++last;
}

static bool grow_slots(void)
{
    uint32_t capacity = slot_capacity != 0 ? slot_capacity * 2 : 1024;

    if (!SPW_RESIZE(&slots, capacity)) {
        return false;
    }
    slot_capacity = capacity;
    return true;
}

static bool give_handle(struct sim_chunk *chunk)
{
    uint32_t number = free_slot;

    if (number != UINT32_MAX) {
        free_slot = slots[number].next_free;
    } else {
        if (slot_count == slot_capacity && !grow_slots()) {
            return false;
        }
        number = slot_count++;
        slots[number].generation = 0;
    }
    slots[number].generation++;
    slots[number].chunk = chunk;
    chunk->handle = (uint64_t)slots[number].generation << 32 | (number + 1);
    return true;
}

static void drop_handle(struct sim_chunk *chunk)
{
    uint32_t number = (uint32_t)chunk->handle - 1;

    slots[number].chunk = NULL;
    slots[number].next_free = free_slot;
    free_slot = number;
}

struct sim_chunk *sim_chunk_find(CUmemGenericAllocationHandle handle)
{
    uint32_t number = (uint32_t)handle - 1;

    if (number >= slot_count || slots[number].chunk == NULL ||
        slots[number].generation != (uint32_t)(handle >> 32) ||
        slots[number].chunk->handle_refs == 0) {
        return NULL;
    }
    return slots[number].chunk;
}

static CUresult charge(const struct sim_chunk *chunk)
{
    return chunk->device != NULL ? sim_budget_charge(chunk->device, chunk->size, SIM_USE_MEMORY)
                                 : sim_host_budget_charge(chunk->size);
}

static void refund(const struct sim_chunk *chunk)
{
    if (chunk->imported) {
        return;
    }
    if (chunk->device != NULL) {
        sim_budget_refund(chunk->device, chunk->size, SIM_USE_MEMORY);
        if (chunk->is_held) {
            sim_run_record_held(chunk->device, -(int64_t)chunk->size);
        }
    } else {
        sim_host_budget_refund(chunk->size);
    }
}

static struct sim_chunk *new_chunk(const CUmemAllocationProp *prop, size_t size)
{
    struct sim_chunk *chunk = calloc(1, sizeof(*chunk));

    if (chunk == NULL) {
        return NULL;
    }
    chunk->size = size;
    chunk->prop = *prop;
    chunk->id = sim_buffer_id();
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        chunk->device = sim_device_get(prop->location.id);
    } else if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
        chunk->host_node = prop->location.id;
    }
    return chunk;
}

CUresult sim_chunk_create(const CUmemAllocationProp *prop, size_t size, bool with_handle,
                          struct sim_chunk **ret_chunk)
{
    struct sim_chunk *chunk = new_chunk(prop, size);
    CUresult result;

    if (chunk == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = charge(chunk);
    if (result != CUDA_SUCCESS) {
        goto err_free;
    }
    if (with_handle) {
        result = sim_chunk_retain(chunk);
        if (result != CUDA_SUCCESS) {
            goto err_refund;
        }
    }
    if (with_handle && chunk->device != NULL) {
        chunk->is_held = true;
        sim_run_record_held(chunk->device, (int64_t)size);
    }
    *ret_chunk = chunk;
    return CUDA_SUCCESS;

err_refund:
    refund(chunk);
err_free:
    free(chunk);
    return result;
}

CUresult sim_chunk_create_on(struct sim_device *device, size_t size, struct sim_chunk **ret_chunk)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal},
    };

    return sim_chunk_create(&prop, size, false, ret_chunk);
}

CUresult sim_chunk_retain(struct sim_chunk *chunk)
{
    if (chunk->handle == 0 && !give_handle(chunk)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    chunk->handle_refs++;
    return CUDA_SUCCESS;
}

void sim_chunk_release(struct sim_chunk *chunk)
{
    chunk->handle_refs--;
    sim_chunk_settle(chunk);
}

void sim_chunk_settle(struct sim_chunk *chunk)
{
    if (chunk->handle_refs > 0 || chunk->mappings != NULL) {
        return;
    }
    if (chunk->handle != 0) {
        drop_handle(chunk);
    }
    sim_extent_release(&chunk->extent);
    refund(chunk);
    free(chunk);
}

bool sim_chunk_place(struct sim_chunk *chunk, uint64_t wanted)
{
    struct sim_backing *backing;

    if (chunk->extent.range.size != 0) {
        return true;
    }
    backing = chunk->device != NULL ? sim_backing_of_device(chunk->device->ordinal)
                                    : sim_backing_of_host(chunk->host_node);
    if (backing == NULL) {
        return false;
    }
    sim_extent_place(&chunk->extent, backing, wanted, chunk->size);
    return true;
}

bool sim_chunk_isolate(struct sim_chunk *chunk)
{
    struct label label = {
        .magic = LABEL_MAGIC,
        .location_type = (int32_t)chunk->prop.location.type,
        .location_id = chunk->device != NULL ? chunk->device->index : chunk->prop.location.id,
    };

    return sim_chunk_place(chunk, SIM_EXTENT_ANYWHERE) &&
           sim_extent_isolate(&chunk->extent, &label, sizeof(label));
}

static struct sim_chunk *chunk_of_fd(int fd)
{
    for (uint32_t i = 0; i < slot_count; i++) {
        if (slots[i].chunk != NULL && sim_extent_is_fd(&slots[i].chunk->extent, fd)) {
            return slots[i].chunk;
        }
    }
    return NULL;
}

static bool label_is_valid(const struct label *label)
{
    if (label->magic != LABEL_MAGIC) {
        return false;
    }
    return label->location_type != CU_MEM_LOCATION_TYPE_DEVICE ||
           sim_device_of_index(label->location_id) != NULL;
}

/* A chunk of another process, which was charged for it. */
static CUresult adopt(int fd, struct sim_chunk **ret_chunk)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    };
    struct sim_extent extent;
    struct sim_chunk *chunk;
    struct label label;

    if (!sim_extent_adopt(&extent, fd, &label, sizeof(label))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!label_is_valid(&label)) {
        sim_extent_release(&extent);
        return CUDA_ERROR_INVALID_VALUE;
    }
    prop.location.type = (CUmemLocationType)label.location_type;
    prop.location.id = label.location_id;
    if (prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        prop.location.id = sim_device_of_index(label.location_id)->ordinal;
    }
    chunk = new_chunk(&prop, (size_t)extent.range.size);
    if (chunk == NULL || sim_chunk_retain(chunk) != CUDA_SUCCESS) {
        free(chunk);
        sim_extent_release(&extent);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    chunk->imported = true;
    chunk->extent = extent;
    *ret_chunk = chunk;
    return CUDA_SUCCESS;
}

CUresult sim_chunk_import(int fd, struct sim_chunk **ret_chunk)
{
    struct sim_chunk *chunk = chunk_of_fd(fd);
    CUresult result;

    if (chunk == NULL) {
        return adopt(fd, ret_chunk);
    }
    result = sim_chunk_retain(chunk);
    if (result == CUDA_SUCCESS) {
        *ret_chunk = chunk;
    }
    return result;
}
