#include "sim/driver/memory/mempool.h"

#include <stdlib.h>

#include "sim/driver/core/run_record.h"
#include "sim/driver/memory/alloc.h"
#include "sim/driver/memory/content.h"
#include "sim/driver/memory/region.h"

/* Pools of current drivers were observed to reserve memory in multiples of this; cuda.h does not
 * define it. */
#define SEGMENT_BYTES ((size_t)32 << 20)

/* A free that its stream has not reached yet. */
struct sim_queued_free {
    struct sim_queued_free *next;
    struct sim_queued_free **link;
    struct sim_block *block; /* NULL: already reused on the same stream */
    CUmemoryPool pool;
    unsigned long long stream; /* id of that stream */
};

static CUmemoryPool pools;

CUmemoryPool sim_mempool_create(struct sim_device *device, const CUmemPoolProps *props)
{
    CUmemoryPool pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        return NULL;
    }
    pool->device = device;
    pool->props = *props;
    for (size_t i = 0; i < sizeof(pool->reuse) / sizeof(pool->reuse[0]); i++) {
        pool->reuse[i] = 1; /* cuda.h: default enabled */
    }
    pool->readers = UINT64_C(1) << device->ordinal;
    pool->writers = pool->readers;
    pool->queued_end = &pool->queued;
    pool->next = pools;
    pools = pool;
    return pool;
}

CUmemoryPool sim_mempool_default(struct sim_device *device)
{
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal},
    };

    if (device->default_pool == NULL) {
        device->default_pool = sim_mempool_create(device, &props);
        if (device->default_pool != NULL) {
            device->default_pool->is_default = true;
        }
    }
    return device->default_pool;
}

CUmemoryPool sim_mempool_current(struct sim_device *device)
{
    return device->current_pool != NULL ? device->current_pool : sim_mempool_default(device);
}

bool sim_mempool_is_live(CUmemoryPool pool)
{
    for (CUmemoryPool known = pools; known != NULL; known = known->next) {
        if (known == pool) {
            return !pool->destroyed;
        }
    }
    return false;
}

static void release_segment(CUmemoryPool pool, struct sim_segment *segment)
{
    struct sim_mapping *region = segment->owner;

    pool->reserved -= segment->range.size;
    sim_heap_remove(&pool->heap, segment);
    sim_region_destroy(region);
}

void sim_mempool_trim(CUmemoryPool pool, uint64_t keep)
{
    uint64_t next = 0;
    struct sim_segment *segment;

    while ((segment = (struct sim_segment *)sim_rangemap_from(&pool->heap.segments, next)) !=
           NULL) {
        next = sim_range_end(&segment->range);
        if (segment->used == 0 && pool->reserved - segment->range.size >= keep) {
            release_segment(pool, segment);
        }
    }
}

/* Frees a destroyed pool without blocks. */
static void settle(CUmemoryPool pool)
{
    CUmemoryPool *link = &pools;

    if (!pool->destroyed || pool->blocks > 0 || pool->queued != NULL) {
        return;
    }
    sim_mempool_trim(pool, 0);
    while (*link != pool) {
        link = &(*link)->next;
    }
    *link = pool->next;
    free(pool);
}

void sim_mempool_destroy(CUmemoryPool pool)
{
    /* cuda.h: destroying the current pool makes the default one current. */
    if (pool->device->current_pool == pool) {
        pool->device->current_pool = NULL;
    }
    pool->destroyed = true;
    settle(pool);
}

static CUresult add_segment(CUmemoryPool pool, size_t size)
{
    struct sim_mapping *region;
    CUresult result;

    if (pool->props.maxSize != 0 && size > pool->props.maxSize - pool->reserved) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_region_create(pool->device, size, SIM_MAPPING_POOL, &region);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_heap_add(&pool->heap, region->range.start, region->range.size, region) == NULL) {
        sim_region_destroy(region);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->readers = pool->readers;
    region->writers = pool->writers;
    pool->reserved += region->range.size;
    if (pool->reserved > pool->reserved_high) {
        pool->reserved_high = pool->reserved;
    }
    return CUDA_SUCCESS;
}

/* Adds a segment to the pool. Its size is rounded up to SEGMENT_BYTES or, if this does not fit, to
 * granules. If neither size fits, frees unused segments and tries again. */
static CUresult grow(CUmemoryPool pool, size_t span)
{
    size_t needed = (span + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
    size_t generous = (span + SEGMENT_BYTES - 1) & ~(SEGMENT_BYTES - 1);

    if (needed < span || generous < span) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (add_segment(pool, generous) == CUDA_SUCCESS || add_segment(pool, needed) == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
    }
    sim_mempool_trim(pool, 0);
    return add_segment(pool, needed);
}

static struct sim_block *new_block(CUmemoryPool pool, uint64_t address, size_t size)
{
    size_t span = sim_block_round(size);
    struct sim_block *block = sim_block_new(SIM_BLOCK_POOL, address, span, size);

    if (block == NULL) {
        return NULL;
    }
    block->span = span;
    block->device = pool->device;
    block->pool = pool;
    pool->blocks++;
    pool->used += span;
    sim_run_record_held(pool->device, (int64_t)span);
    if (pool->used > pool->used_high) {
        pool->used_high = pool->used;
    }
    return block;
}

/* Takes memory whose free is queued on the same stream, because this stream may reuse the memory
 * immediately. The freed block keeps its other bytes. Returns the address, or 0. */
static uint64_t reuse_queued(CUmemoryPool pool, size_t span, unsigned long long stream)
{
    struct sim_queued_free *queued = pool->queued;
    uint64_t address;

    while (queued != NULL &&
           (queued->block == NULL || queued->stream != stream || queued->block->span < span)) {
        queued = queued->next;
    }
    if (queued == NULL) {
        return 0;
    }
    address = queued->block->range.start;
    if (queued->block->span == span) {
        sim_block_delete(queued->block);
        queued->block = NULL;
        pool->blocks--;
    } else {
        sim_block_shrink(queued->block, span);
    }
    return address;
}

static uint64_t take(CUmemoryPool pool, size_t span, unsigned long long stream)
{
    uint64_t address = reuse_queued(pool, span, stream);

    if (address == 0) {
        address = sim_heap_take(&pool->heap, span);
    }
    if (address == 0 && grow(pool, span) == CUDA_SUCCESS) {
        address = sim_heap_take(&pool->heap, span);
    }
    return address;
}

CUresult sim_mempool_alloc(CUmemoryPool pool, size_t size, unsigned long long stream,
                           struct sim_block **ret_block)
{
    size_t span = sim_block_round(size);
    uint64_t address = span >= size ? take(pool, span, stream) : 0;
    struct sim_block *block;

    if (address == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block = new_block(pool, address, size);
    if (block == NULL) {
        sim_heap_give(&pool->heap, address, span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_block = block;
    return CUDA_SUCCESS;
}

bool sim_mempool_has_queued_frees(CUmemoryPool pool)
{
    return pool->queued != NULL;
}

/* Returns the memory of a block to the pool. */
static void give(struct sim_block *block)
{
    CUmemoryPool pool = block->pool;

    sim_mem_discard(block->range.start, (size_t)block->span);
    sim_heap_give(&pool->heap, block->range.start, block->span);
    sim_block_delete(block);
    pool->blocks--;
}

void sim_mempool_free_now(struct sim_block *block)
{
    CUmemoryPool pool = block->pool;

    pool->used -= block->span;
    sim_run_record_held(pool->device, -(int64_t)block->span);
    give(block);
    settle(pool);
}

void sim_queued_free_execute(void *arg)
{
    struct sim_queued_free *queued = arg;
    CUmemoryPool pool = queued->pool;

    *queued->link = queued->next;
    if (queued->next != NULL) {
        queued->next->link = queued->link;
    } else {
        pool->queued_end = queued->link;
    }
    if (queued->block != NULL) {
        give(queued->block);
    }
    free(queued);
    settle(pool);
}

CUresult sim_mempool_queue_free(struct sim_block *block, unsigned long long stream,
                                struct sim_queued_free **ret_queued)
{
    struct sim_queued_free *queued = calloc(1, sizeof(*queued));
    CUmemoryPool pool = block->pool;

    if (queued == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    queued->block = block;
    queued->pool = pool;
    queued->stream = stream;
    queued->link = pool->queued_end;
    *pool->queued_end = queued;
    pool->queued_end = &queued->next;
    block->queued = queued;
    pool->used -= block->span;
    sim_run_record_held(pool->device, -(int64_t)block->span);
    *ret_queued = queued;
    return CUDA_SUCCESS;
}

void sim_queued_free_cancel(struct sim_queued_free *queued)
{
    struct sim_block *block = queued->block;

    block->pool->used += block->span;
    sim_run_record_held(block->pool->device, (int64_t)block->span);
    block->queued = NULL;
    queued->block = NULL;
    sim_queued_free_execute(queued);
}

void sim_mempool_set_access(CUmemoryPool pool, uint64_t readers, uint64_t writers)
{
    struct sim_range *segment = sim_rangemap_from(&pool->heap.segments, 0);

    pool->readers = readers;
    pool->writers = writers;
    while (segment != NULL) {
        struct sim_mapping *region = ((struct sim_segment *)segment)->owner;

        region->readers = readers;
        region->writers = writers;
        segment = sim_rangemap_next(&pool->heap.segments, segment);
    }
}

void sim_mempool_synchronized(struct sim_device *device)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next) {
        if (pool->device == device && pool->reserved > pool->threshold) {
            sim_mempool_trim(pool, pool->threshold);
        }
    }
}
