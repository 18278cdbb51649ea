/* Allocation of blocks of device memory outside of pools.
 *
 * From 2 MiB on, a block is a region of its own; smaller ones are cut, in multiples of 512 bytes,
 * from slabs of one granule, as the real driver packs small allocations into 2 MiB pages. A slab is
 * given back when it is empty.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stddef.h>

#include <cuda.h>

#include "sim/driver/block.h"
#include "sim/driver/device.h"

/* What addresses and sizes of blocks are multiples of. */
#define SIM_BLOCK_ALIGN ((size_t)512)

static inline size_t sim_block_round(size_t size)
{
    return (size + SIM_BLOCK_ALIGN - 1) & ~(SIM_BLOCK_ALIGN - 1);
}

/* A new block of kind ALLOC or DRIVER. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_alloc_create(struct sim_device *device, size_t size, enum sim_block_kind kind,
                          struct sim_block **ret_block);

/* A new block of kind MANAGED or HOST: ordinary memory of the process, charged to the host budget.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_alloc_host(struct sim_device *device, size_t size, enum sim_block_kind kind,
                        struct sim_block **ret_block);

/* Frees a block of kind ALLOC, DRIVER or MANAGED. */
void sim_alloc_destroy(struct sim_block *block);

/* Memory goes although queued work names it: on a real device the work faults. Makes that the
 * sticky error of the contexts concerned and says so once; nothing happens if no work names it. */
void sim_alloc_check_unused(uint64_t start, uint64_t size, uint64_t devices, const char *function);
