/* Chunks: physical allocations, and their handles if cuMemCreate made them.
 *
 * A chunk lives while a handle reference or a mapping is left (cuda.h, cuMemRelease). Memory of
 * cuMemAlloc and of pools also consists of chunks, without handles.
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
    bool imported; /* from another process, which is charged for it */
    bool is_held;  /* counted in held_bytes of the record: created by cuMemCreate on a device */
    struct sim_mapping *mappings;
    struct sim_extent extent; /* placed at the first mapping or export */
};

/* A number for a new allocation: CU_POINTER_ATTRIBUTE_BUFFER_ID. */
unsigned long long sim_buffer_id(void);

/* A new chunk, charged to the budget of its location. It has one handle reference or, if
 * `with_handle` is false, no handle: it is then freed with its last mapping.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_chunk_create(const CUmemAllocationProp *prop, size_t size, bool with_handle,
                          struct sim_chunk **ret_chunk);

/* A new chunk of device memory for the driver itself, without a handle.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_chunk_create_on(struct sim_device *device, size_t size, struct sim_chunk **ret_chunk);

/* The chunk of a descriptor that sim_mapping_export() made in this or another process, with one
 * more handle reference; the descriptor stays the caller's. CUDA_ERROR_INVALID_VALUE for any other
 * descriptor. */
CUresult sim_chunk_import(int fd, struct sim_chunk **ret_chunk);

/* Places the chunk in its backing, if it is not placed yet: at offset `wanted` if that is free.
 * False if the system refuses the backing's file. */
bool sim_chunk_place(struct sim_chunk *chunk, uint64_t wanted);

/* The chunk of a handle that still has a reference, or NULL. */
struct sim_chunk *sim_chunk_find(CUmemGenericAllocationHandle handle);

/* Gives the chunk a handle if it has none, and adds a reference to the handle. A chunk keeps its
 * handle's value as long as it lives (cuda.h, cuMemRetainAllocationHandle). */
CUresult sim_chunk_retain(struct sim_chunk *chunk);

/* Drops a handle reference. */
void sim_chunk_release(struct sim_chunk *chunk);

/* Frees the chunk if no reference and no mapping is left. */
void sim_chunk_settle(struct sim_chunk *chunk);

/* Moves the content to a file of the chunk's own, labelled for sim_chunk_import(), unless the chunk
 * has such a file. False if the system refuses a file. For a mapped chunk, call
 * sim_mapping_export() instead. */
bool sim_chunk_isolate(struct sim_chunk *chunk);
