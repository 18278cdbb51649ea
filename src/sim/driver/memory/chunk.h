/* Chunks: physical allocations, and their handles if cuMemCreate made them.
 *
 * A chunk lives until its last handle reference and its last mapping are gone (cuda.h,
 * cuMemRelease). Memory of cuMemAlloc and of pools also consists of chunks, without handles.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/memory/backing.h"

struct sim_mapping;

struct sim_chunk {
    size_t size;
    struct sim_device *device; /* NULL: at a host location */
    int host_node;
    CUmemAllocationProp prop;
    unsigned long long id; /* never used twice */
    uint64_t handle;       /* 0: none */
    unsigned int handle_refs;
    bool imported; /* imported from another process, which is charged for the chunk */
    bool is_held;  /* counted in held_bytes of the record: created by cuMemCreate on a device */
    struct sim_mapping *mappings;
    struct sim_extent extent; /* placed at the first mapping or export */
};

/* Returns a new number for an allocation: CU_POINTER_ATTRIBUTE_BUFFER_ID. */
unsigned long long sim_buffer_id(void);

/* Creates a chunk and charges it to the budget of its location. The chunk has one handle reference.
 * If `with_handle` is false, the chunk has no handle and is freed with its last mapping.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_chunk_create(const CUmemAllocationProp *prop, size_t size, bool with_handle,
                          struct sim_chunk **ret_chunk);

/* Creates a chunk of device memory for the driver itself, without a handle.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_chunk_create_on(struct sim_device *device, size_t size, struct sim_chunk **ret_chunk);

/* The chunk of a descriptor that sim_mapping_export() returned in this or another process. Adds a
 * handle reference. The caller keeps the descriptor. CUDA_ERROR_INVALID_VALUE for any other
 * descriptor. */
CUresult sim_chunk_import(int fd, struct sim_chunk **ret_chunk);

/* Places the chunk in its backing if it is not placed yet, at offset `wanted` if this offset is
 * free. False if the system refuses the backing's file. */
bool sim_chunk_place(struct sim_chunk *chunk, uint64_t wanted);

/* The chunk of a handle that still has a reference, or NULL. */
struct sim_chunk *sim_chunk_find(CUmemGenericAllocationHandle handle);

/* Gives the chunk a handle if it has none, and adds a reference to the handle. The value of the
 * handle stays the same as long as the chunk lives (cuda.h, cuMemRetainAllocationHandle). */
CUresult sim_chunk_retain(struct sim_chunk *chunk);

/* Drops a handle reference. */
void sim_chunk_release(struct sim_chunk *chunk);

/* Frees the chunk if no reference and no mapping is left. */
void sim_chunk_settle(struct sim_chunk *chunk);

/* Moves the content to a file of the chunk's own, with a label for sim_chunk_import(). Does nothing
 * if the chunk already has such a file. False if the system refuses a file. For a mapped chunk,
 * call sim_mapping_export() instead. */
bool sim_chunk_isolate(struct sim_chunk *chunk);
