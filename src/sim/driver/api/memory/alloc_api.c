/* cuMemAlloc and its relatives. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/budget.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/work.h"
#include "sim/driver/graph/graph_memory.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/memory/alloc.h"
#include "sim/driver/memory/block.h"
#include "sim/driver/memory/mempool.h"

/* The pitch alignment of current GPUs; cuda.h leaves it to the driver. */
#define PITCH_ALIGN ((size_t)512)

static CUresult allocate(CUdeviceptr *dptr, size_t size)
{
    CUcontext ctx = sim_ctx_current();
    struct sim_block *block;
    CUresult result;

    if (dptr == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_run_record_asked(ctx->device, size);
    result = sim_capture_unsafe();
    if (result == CUDA_SUCCESS) {
        result = sim_alloc_create(ctx->device, size, SIM_BLOCK_ALLOC, &block);
    }
    if (result != CUDA_SUCCESS) {
        sim_note("size=%zu", size);
        return result;
    }
    block->ctx = ctx;
    *dptr = block->range.start;
    sim_note("size=%zu -> %#llx", size, (unsigned long long)*dptr);
    return CUDA_SUCCESS;
}

SIM_API(cuMemAlloc_v2, SIM_CONTEXT, (CUdeviceptr * dptr, size_t bytesize))
{
    return allocate(dptr, bytesize);
}

SIM_API(cuMemAllocPitch_v2, SIM_CONTEXT,
        (CUdeviceptr * dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
         unsigned int ElementSizeBytes))
{
    size_t pitch = (WidthInBytes + PITCH_ALIGN - 1) & ~(PITCH_ALIGN - 1);
    CUresult result;

    /* cuda.h: an element may be 4, 8 or 16 bytes. */
    if (pPitch == NULL || WidthInBytes == 0 || Height == 0 || pitch < WidthInBytes ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (Height > SIZE_MAX / pitch) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = allocate(dptr, pitch * Height);
    if (result == CUDA_SUCCESS) {
        *pPitch = pitch;
    }
    return result;
}

SIM_API(cuMemAllocManaged, SIM_CONTEXT, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags))
{
    CUcontext ctx = sim_ctx_current();
    struct sim_block *block;
    CUresult result;

    if (dptr == NULL || bytesize == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_run_record_asked(NULL, bytesize);
    result = sim_capture_unsafe();
    if (result == CUDA_SUCCESS) {
        result = sim_alloc_host(ctx->device, bytesize, SIM_BLOCK_MANAGED, &block);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    block->ctx = ctx;
    *dptr = block->range.start;
    return CUDA_SUCCESS;
}

/* The block that starts at the address and may be given to cuMemFree. */
static struct sim_block *freeable_block(CUdeviceptr address)
{
    struct sim_block *block = sim_block_find(address);

    if (block == NULL || block->range.start != address || block->queued != NULL || block->freeing) {
        return NULL;
    }
    switch (block->kind) {
    case SIM_BLOCK_ALLOC:
    case SIM_BLOCK_POOL:
        return block;
    case SIM_BLOCK_MANAGED:
        return block->ctx != NULL ? block : NULL; /* a library frees its own variables */
    default:
        return NULL;
    }
}

/* cuda.h: memory of a pool is freed without implicit synchronisation; other memory possibly with it
 * (SPILLWAY_SIM_FREE_SYNC). */
SIM_API(cuMemFree_v2, SIM_CONTEXT, (CUdeviceptr dptr))
{
    struct sim_block *block;
    CUresult result;

    sim_note("%#llx", (unsigned long long)dptr);
    if (dptr == 0) {
        return CUDA_SUCCESS; /* as cudaFree; cuda.h does not define it */
    }
    result = sim_capture_unsafe();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    block = freeable_block(dptr);
    if (block == NULL) {
        return sim_graph_memory_release(dptr);
    }
    if (block->kind == SIM_BLOCK_POOL) {
        sim_mempool_free_now(block);
        return CUDA_SUCCESS;
    }
    if (sim_options()->free_syncs) {
        result = sim_work_drain_device(block->device);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        block = freeable_block(dptr); /* the lock may have been released */
        if (block == NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    sim_work_check_unused(dptr, block->range.size, UINT64_C(1) << block->device->ordinal,
                          "cuMemFree");
    sim_alloc_destroy(block);
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetInfo_v2, SIM_CONTEXT, (size_t * free, size_t *total))
{
    const struct sim_device *device = sim_ctx_current()->device;

    if (free == NULL || total == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_budget_look();
    *free = sim_budget_free(device);
    *total = device->total_bytes;
    return CUDA_SUCCESS;
}

/* cuda.h: the range of the allocation, or of the cuMemMap mapping, that contains the address. */
SIM_API(cuMemGetAddressRange_v2, SIM_HEALTHY,
        (CUdeviceptr * pbase, size_t *psize, CUdeviceptr dptr))
{
    const struct sim_block *block = sim_block_find(dptr);
    const struct sim_mapping *mapping = sim_mapping_find(dptr);
    uint64_t start, size;

    if (block != NULL && block->queued == NULL && block->kind != SIM_BLOCK_REGISTERED) {
        start = block->range.start;
        size = block->size;
    } else if (block == NULL && mapping != NULL && mapping->kind == SIM_MAPPING_USER) {
        start = mapping->range.start;
        size = mapping->range.size;
    } else {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (pbase != NULL) {
        *pbase = start;
    }
    if (psize != NULL) {
        *psize = (size_t)size;
    }
    return CUDA_SUCCESS;
}

/* Advice is checked and has no effect: managed memory has no location here. */
static CUresult advise(CUdeviceptr address, size_t size)
{
    const struct sim_block *block = sim_block_find(address);

    if (size == 0 || block == NULL || block->kind != SIM_BLOCK_MANAGED ||
        address + size > sim_range_end(&block->range)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuMemAdvise, SIM_HEALTHY,
        (CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device))
{
    return advise(devPtr, count);
}

SIM_API(cuMemAdvise_v2, SIM_HEALTHY,
        (CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location))
{
    return advise(devPtr, count);
}

/* No memory can be shared as a dma_buf: CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0. */
SIM_API(cuMemGetHandleForAddressRange, SIM_HEALTHY,
        (void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
         unsigned long long flags))
{
    return CUDA_ERROR_NOT_SUPPORTED;
}
