#include "sim/driver/memory/alloc.h"

#include <sys/mman.h>

#include "common/bounds.h"
#include "sim/driver/core/budget.h"
#include "sim/driver/core/heap.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/memory/content.h"
#include "sim/driver/memory/region.h"

static struct sim_heap slabs[SPW_DEVICES_MAX];

static CUresult take_from_slabs(struct sim_device *device, size_t span, uint64_t *ret_address)
{
    struct sim_heap *heap = &slabs[device->ordinal];
    uint64_t address = sim_heap_take(heap, span);
    struct sim_mapping *slab;
    CUresult result;

    if (address == 0) {
        result = sim_region_create(device, SIM_GRANULE, SIM_MAPPING_ALLOC, &slab);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        if (sim_heap_add(heap, slab->range.start, SIM_GRANULE, slab) == NULL) {
            sim_region_destroy(slab);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        address = sim_heap_take(heap, span);
    }
    *ret_address = address;
    return CUDA_SUCCESS;
}

static void give_to_slabs(struct sim_device *device, uint64_t start, uint64_t span)
{
    struct sim_heap *heap = &slabs[device->ordinal];
    struct sim_segment *segment = sim_heap_give(heap, start, span);
    struct sim_mapping *slab = segment->owner;

    if (segment->used == 0) {
        sim_heap_remove(heap, segment);
        sim_region_destroy(slab);
    }
}

CUresult sim_alloc_create(struct sim_device *device, size_t size, enum sim_block_kind kind,
                          struct sim_block **ret_block)
{
    struct sim_mapping *region = NULL;
    uint64_t address, span;
    struct sim_block *block;
    CUresult result;

    if (size > device->total_bytes) {
        sim_run_record_lacked(device, size, size - sim_budget_free(device));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (size >= SIM_GRANULE) {
        result = sim_region_create(device, size, SIM_MAPPING_ALLOC, &region);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        address = region->range.start;
        span = region->range.size;
    } else {
        span = sim_block_round(size);
        result = take_from_slabs(device, span, &address);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    block = sim_block_new(kind, address, sim_block_round(size), size);
    if (block == NULL) {
        goto err_free;
    }
    block->span = span;
    block->device = device;
    block->region = region;
    if (kind == SIM_BLOCK_ALLOC) {
        sim_run_record_held(device, (int64_t)block->range.size);
    }
    *ret_block = block;
    return CUDA_SUCCESS;

err_free:
    if (region != NULL) {
        sim_region_destroy(region);
    } else {
        give_to_slabs(device, address, span);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_alloc_host(struct sim_device *device, size_t size, enum sim_block_kind kind,
                        struct sim_block **ret_block)
{
    size_t span = (size + 4095) & ~(size_t)4095;
    struct sim_block *block;
    void *address;

    if (span < size || sim_host_budget_charge(span) != CUDA_SUCCESS) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* It is charged here, so it must not count again as anonymous memory (core/machine.h). */
    address = mmap(NULL, span, PROT_READ | PROT_WRITE,
                   (device->sharing.one_memory ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS |
                       MAP_NORESERVE,
                   -1, 0);
    if (address == MAP_FAILED) {
        goto err_refund;
    }
    block = sim_block_new(kind, (uintptr_t)address, size, size);
    if (block == NULL) {
        goto err_unmap;
    }
    block->span = span;
    block->device = device;
    *ret_block = block;
    return CUDA_SUCCESS;

err_unmap:
    munmap(address, span);
err_refund:
    sim_host_budget_refund(span);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_alloc_destroy(struct sim_block *block)
{
    if (block->kind == SIM_BLOCK_ALLOC) {
        sim_run_record_held(block->device, -(int64_t)block->range.size);
    }
    if (block->kind == SIM_BLOCK_MANAGED) {
        munmap((void *)(uintptr_t)block->range.start, (size_t)block->span);
        sim_host_budget_refund((size_t)block->span);
    } else if (block->region != NULL) {
        sim_region_destroy(block->region);
    } else {
        sim_mem_discard(block->range.start, (size_t)block->span);
        give_to_slabs(block->device, block->range.start, block->span);
    }
    sim_block_delete(block);
}

CUresult sim_mem_driver_alloc(struct sim_device *device, size_t size, CUdeviceptr *ret_address)
{
    struct sim_block *block;
    CUresult result = sim_alloc_create(device, size, SIM_BLOCK_DRIVER, &block);

    if (result == CUDA_SUCCESS) {
        *ret_address = block->range.start;
    }
    return result;
}

void sim_mem_driver_free(CUdeviceptr address)
{
    struct sim_block *block = sim_block_find(address);

    if (block != NULL && block->kind == SIM_BLOCK_DRIVER) {
        sim_alloc_destroy(block);
    }
}

bool sim_alloc_is_anonymous(const struct sim_block *block)
{
    return block->kind == SIM_BLOCK_REGISTERED && block->device->sharing.one_memory;
}

void sim_alloc_destroy_pinned(struct sim_block *block)
{
    if (block->kind == SIM_BLOCK_HOST) {
        munmap((void *)(uintptr_t)block->range.start, (size_t)block->span);
    }
    if (!sim_alloc_is_anonymous(block)) {
        sim_host_budget_refund((size_t)block->span);
    }
    sim_block_delete(block);
}

void sim_alloc_destroy_ipc(struct sim_block *block)
{
    sim_region_destroy(block->region);
    sim_block_delete(block);
}

void sim_mem_ctx_release(CUcontext ctx)
{
    struct sim_block *block = sim_block_from(0);

    while (block != NULL) {
        uint64_t next = sim_range_end(&block->range);

        if (block->ctx == ctx && sim_block_is_host(block) && block->kind != SIM_BLOCK_MANAGED) {
            sim_alloc_destroy_pinned(block);
        } else if (block->ctx == ctx && block->kind == SIM_BLOCK_IPC) {
            sim_alloc_destroy_ipc(block);
        } else if (block->ctx == ctx) {
            sim_alloc_destroy(block);
        }
        block = sim_block_from(next);
    }
}
