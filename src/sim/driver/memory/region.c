#include "sim/driver/memory/region.h"

#include "common/bounds.h"
#include "sim/driver/core/heap.h"

/* Arenas are larger than the device's memory, so that addresses are reused late and fragmentation
 * does not use up an arena. */
#define ARENA_SHARE 4
#define ARENA_LEAST ((size_t)16 << 30)
#define ARENA_MOST  ((size_t)4 << 40)

static struct sim_heap arenas[SPW_DEVICES_MAX];

static CUresult grow(struct sim_device *device, size_t least)
{
    struct sim_heap *heap = &arenas[device->ordinal];
    size_t size = device->total_bytes < ARENA_MOST / ARENA_SHARE ? device->total_bytes * ARENA_SHARE
                                                                 : ARENA_MOST;
    struct sim_reservation *arena;

    size = size > ARENA_LEAST ? size : ARENA_LEAST;
    size = (size > least ? size : least) & ~(SIM_GRANULE - 1);
    arena = sim_space_reserve(size, SIM_GRANULE, 0, /* internal */ true);
    if (arena == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    arena->arena = heap;
    heap->next_fit = true;
    if (sim_heap_add(heap, arena->range.start, size, arena) == NULL) {
        sim_space_free(arena);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static CUresult take_address(struct sim_device *device, size_t size, uint64_t *ret_address)
{
    uint64_t address = sim_heap_take(&arenas[device->ordinal], size);

    if (address == 0) {
        if (grow(device, size) != CUDA_SUCCESS) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        address = sim_heap_take(&arenas[device->ordinal], size);
    }
    *ret_address = address;
    return CUDA_SUCCESS;
}

/* Maps the chunk into the arena of the device that will use it. */
static CUresult map_for(struct sim_device *device, struct sim_chunk *chunk,
                        enum sim_mapping_kind kind, struct sim_mapping **ret_region)
{
    struct sim_mapping *region;
    uint64_t address;
    CUresult result = take_address(device, chunk->size, &address);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_mapping_create(sim_space_find(address), address, chunk, kind, &region);
    if (result != CUDA_SUCCESS) {
        sim_heap_give(&arenas[device->ordinal], address, chunk->size);
        return result;
    }
    region->readers = UINT64_C(1) << device->ordinal;
    region->writers = region->readers;
    *ret_region = region;
    return CUDA_SUCCESS;
}

CUresult sim_region_create(struct sim_device *device, size_t size, enum sim_mapping_kind kind,
                           struct sim_mapping **ret_region)
{
    struct sim_chunk *chunk;
    CUresult result;

    if (size > SIZE_MAX - SIM_GRANULE) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size = (size + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
    result = sim_chunk_create_on(device, size, &chunk);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = map_for(device, chunk, kind, ret_region);
    if (result != CUDA_SUCCESS) {
        sim_chunk_settle(chunk);
    }
    return result;
}

CUresult sim_region_open(struct sim_device *device, struct sim_chunk *chunk,
                         struct sim_mapping **ret_region)
{
    return map_for(device, chunk, SIM_MAPPING_ALLOC, ret_region);
}

void sim_region_destroy(struct sim_mapping *region)
{
    struct sim_heap *heap = region->reservation->arena;
    uint64_t start = region->range.start, size = region->range.size;

    sim_mapping_remove(start, start + size);
    sim_heap_give(heap, start, size);
}
