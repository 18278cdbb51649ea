/* The functions on memory pools, and stream-ordered allocation. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/stream.h"
#include "sim/driver/graph/graph_memory.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/memory/alloc.h"
#include "sim/driver/memory/mempool.h"

#include <string.h>

/* Maximum number of steps of the virtual clock during which an allocation without free memory waits
 * for queued frees. */
#define QUEUED_FREE_STEPS 4096

/* Without free memory, real drivers make the stream wait for queued frees; here the clock advances.
 */
static CUresult allocate_block(CUmemoryPool pool, size_t size, const struct sim_stream *stream,
                               struct sim_block **ret_block)
{
    unsigned long long id = sim_stream_id(stream);
    CUresult result = sim_mempool_alloc(pool, size, id, ret_block);

    for (int i = 0;
         result != CUDA_SUCCESS && sim_mempool_has_queued_frees(pool) && i < QUEUED_FREE_STEPS;
         i++) {
        sim_schedule_step(SIM_STEP_NS);
        result = sim_mempool_alloc(pool, size, id, ret_block);
    }
    return result;
}

static CUresult free_in_order(struct sim_block *block, struct sim_stream *stream)
{
    struct sim_queued_free *queued;
    CUresult result = sim_mempool_queue_free(block, sim_stream_id(stream), &queued);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_submit_call(stream, sim_queued_free_execute, queued);
    if (result != CUDA_SUCCESS) {
        sim_queued_free_cancel(queued);
    }
    return result;
}

static CUresult allocate(CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream handle,
                         bool ptsz)
{
    struct sim_stream *stream;
    struct sim_block *block;
    CUresult result;

    if (dptr == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_stream_resolve(handle, ptsz, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_stream_is_capturing(stream)) {
        sim_run_record_asked(sim_stream_ctx(stream)->device, size);
        return sim_capture_mem_alloc(stream, size, dptr);
    }
    if (pool == NULL) {
        pool = sim_mempool_current(sim_stream_ctx(stream)->device);
        if (pool == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    sim_run_record_asked(pool->device, size);
    result = sim_capture_unsafe(); /* as on an H100; cuda.h does not define it */
    if (result == CUDA_SUCCESS) {
        result = allocate_block(pool, size, stream, &block);
    }
    if (result != CUDA_SUCCESS) {
        sim_note("size=%zu", size);
        return result;
    }
    *dptr = block->range.start;
    sim_note("size=%zu stream=%llu -> %#llx", size, sim_stream_id(stream),
             (unsigned long long)*dptr);
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuMemAllocAsync, SIM_HEALTHY, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream))
{
    return allocate(dptr, bytesize, NULL, hStream, ptsz);
}

SIM_API_PTSZ(cuMemAllocFromPoolAsync, SIM_HEALTHY,
             (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream))
{
    if (!sim_mempool_is_live(pool)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(dptr, bytesize, pool, hStream, ptsz);
}

/* Executes the stream-ordered free of a block of cuMemAlloc. */
static void execute_free(void *arg)
{
    struct sim_block *block = sim_block_find((uintptr_t)arg);

    if (block != NULL && block->range.start == (uintptr_t)arg && block->freeing) {
        sim_alloc_destroy(block);
    }
}

SIM_API_PTSZ(cuMemFreeAsync, SIM_HEALTHY, (CUdeviceptr dptr, CUstream hStream))
{
    struct sim_stream *stream;
    struct sim_block *block;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_note("%#llx stream=%llu", (unsigned long long)dptr, sim_stream_id(stream));
    if (sim_stream_is_capturing(stream)) {
        return sim_capture_mem_free(stream, dptr);
    }
    block = sim_block_find(dptr);
    if (block == NULL || block->range.start != dptr || block->queued != NULL || block->freeing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (block->kind) {
    case SIM_BLOCK_POOL:
        return free_in_order(block, stream);
    case SIM_BLOCK_ALLOC:
    case SIM_BLOCK_MANAGED:
        block->freeing = true;
        return sim_submit_call(stream, execute_free, (void *)(uintptr_t)dptr);
    case SIM_BLOCK_DRIVER:
        return sim_graph_memory_release(dptr);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The device of a pool's location. CUDA_ERROR_NOT_SUPPORTED for host locations:
 * CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED and similar attributes are 0. */
static CUresult device_at(const CUmemLocation *location, CUmemAllocationType type,
                          struct sim_device **ret_device)
{
    struct sim_device *device;

    if (location == NULL ||
        (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    device = sim_device_get(location->id);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *ret_device = device;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolCreate, SIM_INITIALIZED, (CUmemoryPool * pool, const CUmemPoolProps *poolProps))
{
    struct sim_device *device;
    CUmemoryPool created;
    CUresult result;

    if (pool == NULL || poolProps == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = device_at(&poolProps->location, poolProps->allocType, &device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES is 0. */
    if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    created = sim_mempool_create(device, poolProps);
    if (created == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pool = created;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolDestroy, SIM_INITIALIZED, (CUmemoryPool pool))
{
    /* cuda.h: a default pool cannot be destroyed. */
    if (!sim_mempool_is_live(pool) || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_mempool_destroy(pool);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolTrimTo, SIM_HEALTHY, (CUmemoryPool pool, size_t minBytesToKeep))
{
    if (!sim_mempool_is_live(pool)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_mempool_trim(pool, minBytesToKeep);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAttribute, SIM_INITIALIZED,
        (CUmemoryPool pool, CUmemPool_attribute attr, void *value))
{
    if (!sim_mempool_is_live(pool) || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(&pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], value,
               sizeof(int));
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        memcpy(&pool->threshold, value, sizeof(pool->threshold));
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        /* cuda.h: these attributes can only be set to 0, which restarts the watermark. */
        if (*(const cuuint64_t *)value != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
            pool->used_high = pool->used;
        } else {
            pool->reserved_high = pool->reserved;
        }
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemPoolGetAttribute, SIM_INITIALIZED,
        (CUmemoryPool pool, CUmemPool_attribute attr, void *value))
{
    cuuint64_t bytes;

    if (!sim_mempool_is_live(pool) || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(value, &pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES],
               sizeof(int));
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        bytes = pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        bytes = pool->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        bytes = pool->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        bytes = pool->used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        bytes = pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &bytes, sizeof(bytes));
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAccess, SIM_INITIALIZED,
        (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count))
{
    uint64_t readers, writers;

    if (!sim_mempool_is_live(pool) || map == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    readers = pool->readers;
    writers = pool->writers;
    for (size_t i = 0; i < count; i++) {
        const struct sim_device *device = sim_device_get(map[i].location.id);
        uint64_t bit;

        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (device == NULL || !sim_device_can_access(device, pool->device)) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        bit = UINT64_C(1) << device->ordinal;
        switch (map[i].flags) {
        case CU_MEM_ACCESS_FLAGS_PROT_NONE:
            if (device == pool->device) {
                return CUDA_ERROR_INVALID_VALUE; /* the pool's own device always has access */
            }
            readers &= ~bit;
            writers &= ~bit;
            break;
        case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
            readers |= bit;
            writers |= bit;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    sim_mempool_set_access(pool, readers, writers);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolGetAccess, SIM_INITIALIZED,
        (CUmemAccess_flags * flags, CUmemoryPool memPool, CUmemLocation *location))
{
    const struct sim_device *device;

    if (flags == NULL || location == NULL || !sim_mempool_is_live(memPool) ||
        location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    device = sim_device_get(location->id);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *flags = (memPool->writers >> device->ordinal & 1) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                            : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* Returns the pool that `pool_of` finds for a device; NULL: there is no such device. */
static CUresult give_pool(struct sim_device *device, CUmemoryPool (*pool_of)(struct sim_device *),
                          CUmemoryPool *ret_pool)
{
    CUmemoryPool pool;

    if (ret_pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pool = pool_of(device);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_pool = pool;
    return CUDA_SUCCESS;
}

/* Returns the pool that `pool_of` finds for the device of a location. */
static CUresult give_pool_at(const CUmemLocation *location, CUmemAllocationType type,
                             CUmemoryPool (*pool_of)(struct sim_device *), CUmemoryPool *ret_pool)
{
    struct sim_device *device;
    CUresult result = device_at(location, type, &device);

    if (ret_pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return result == CUDA_SUCCESS ? give_pool(device, pool_of, ret_pool) : result;
}

SIM_API(cuDeviceGetDefaultMemPool, SIM_INITIALIZED, (CUmemoryPool * pool_out, CUdevice dev))
{
    return give_pool(sim_device_get(dev), sim_mempool_default, pool_out);
}

SIM_API(cuDeviceGetMemPool, SIM_INITIALIZED, (CUmemoryPool * pool, CUdevice dev))
{
    return give_pool(sim_device_get(dev), sim_mempool_current, pool);
}

static CUresult make_current(struct sim_device *device, CUmemoryPool pool)
{
    /* cuda.h: the pool must be local to the device. */
    if (!sim_mempool_is_live(pool) || pool->device != device) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    device->current_pool = pool;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceSetMemPool, SIM_INITIALIZED, (CUdevice dev, CUmemoryPool pool))
{
    struct sim_device *device = sim_device_get(dev);

    return device != NULL ? make_current(device, pool) : CUDA_ERROR_INVALID_DEVICE;
}

SIM_API(cuMemGetDefaultMemPool, SIM_INITIALIZED,
        (CUmemoryPool * pool_out, CUmemLocation *location, CUmemAllocationType type))
{
    return give_pool_at(location, type, sim_mempool_default, pool_out);
}

SIM_API(cuMemGetMemPool, SIM_INITIALIZED,
        (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type))
{
    return give_pool_at(location, type, sim_mempool_current, pool);
}

SIM_API(cuMemSetMemPool, SIM_INITIALIZED,
        (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool))
{
    struct sim_device *device;
    CUresult result = device_at(location, type, &device);

    return result == CUDA_SUCCESS ? make_current(device, pool) : result;
}
