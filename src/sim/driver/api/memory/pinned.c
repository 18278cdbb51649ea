/* Page-locked host memory: cuMemHostAlloc, cuMemHostRegister and similar functions. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/budget.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/work.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/memory/alloc.h"
#include "sim/driver/memory/space.h"

#define ALLOC_FLAGS                                                                                \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                             \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |    \
     CU_MEMHOSTREGISTER_READ_ONLY)

static CUresult allocate(void **pp, size_t size, unsigned int flags)
{
    CUcontext ctx = sim_ctx_current();
    struct sim_block *block;
    CUresult result;

    if (pp == NULL || size == 0 || (flags & ~(unsigned int)ALLOC_FLAGS) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_unsafe();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_run_record_asked(NULL, size);
    result = sim_alloc_host(ctx->device, size, SIM_BLOCK_HOST, &block);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    block->ctx = ctx;
    block->flags = flags;
    *pp = (void *)block->range.start;
    return CUDA_SUCCESS;
}

SIM_API(cuMemAllocHost_v2, SIM_CONTEXT, (void **pp, size_t bytesize))
{
    return allocate(pp, bytesize, 0);
}

SIM_API(cuMemHostAlloc, SIM_CONTEXT, (void **pp, size_t bytesize, unsigned int Flags))
{
    return allocate(pp, bytesize, Flags);
}

/* The block of that kind that starts at the address. */
static struct sim_block *block_at(const void *p, enum sim_block_kind kind)
{
    struct sim_block *block = sim_block_find((uintptr_t)p);

    return block != NULL && block->range.start == (uintptr_t)p && block->kind == kind ? block
                                                                                      : NULL;
}

/* Frees or unregisters memory. With SPILLWAY_SIM_FREE_SYNC, waits for queued work first, as
 * cuMemFree does. `unknown`: the error that is returned if `p` is not such memory. */
static CUresult let_go(void *p, enum sim_block_kind kind, CUresult unknown, const char *function)
{
    struct sim_block *block = block_at(p, kind);
    CUresult result = sim_capture_unsafe();

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (block == NULL) {
        return unknown;
    }
    if (sim_options()->free_syncs) {
        result = sim_work_drain_device(block->device);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        block = block_at(p, kind); /* the lock may have been released */
        if (block == NULL) {
            return unknown;
        }
    }
    sim_work_check_unused(block->range.start, block->range.size,
                          UINT64_C(1) << block->device->ordinal, function);
    sim_alloc_destroy_pinned(block);
    return CUDA_SUCCESS;
}

SIM_API(cuMemFreeHost, SIM_CONTEXT, (void *p))
{
    return let_go(p, SIM_BLOCK_HOST, CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost");
}

SIM_API(cuMemHostRegister, SIM_CONTEXT, (void *p, size_t bytesize, unsigned int Flags))
{
    CUcontext ctx = sim_ctx_current();
    uint64_t start = (uintptr_t)p;
    const struct sim_block *next;
    struct sim_block *block;
    CUresult result;

    if (p == NULL || bytesize == 0 || start + bytesize < start ||
        (Flags & ~(unsigned int)REGISTER_FLAGS) != 0 || sim_space_find(start) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_unsafe();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    next = sim_block_from(start);
    if (next != NULL && next->range.start < start + bytesize) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    block = sim_block_new(SIM_BLOCK_REGISTERED, start, bytesize, bytesize);
    if (block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->span = bytesize;
    block->device = ctx->device;
    if (!sim_alloc_is_anonymous(block) && sim_host_budget_charge(bytesize) != CUDA_SUCCESS) {
        sim_block_delete(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->ctx = ctx;
    block->flags = Flags;
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuMemHostRegister_v2, cuMemHostRegister);

SIM_API(cuMemHostUnregister, SIM_CONTEXT, (void *p))
{
    return let_go(p, SIM_BLOCK_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                  "cuMemHostUnregister");
}

/* The device uses the host's address: CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
 * is 1. */
SIM_API(cuMemHostGetDevicePointer_v2, SIM_CONTEXT,
        (CUdeviceptr * pdptr, void *p, unsigned int Flags))
{
    const struct sim_block *block = sim_block_find((uintptr_t)p);

    if (pdptr == NULL || Flags != 0 || block == NULL || !sim_block_is_host(block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pdptr = (uintptr_t)p;
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetFlags, SIM_CONTEXT, (unsigned int *pFlags, void *p))
{
    const struct sim_block *block = sim_block_find((uintptr_t)p);

    if (pFlags == NULL || block == NULL || block->kind != SIM_BLOCK_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pFlags = block->flags;
    return CUDA_SUCCESS;
}
