/* Allocation of blocks of device memory outside of pools.
 *
 * A block of 2 MiB or more is a region of its own. Smaller blocks are cut, in multiples of 512
 * bytes, from slabs of one granule, as the real driver packs small allocations into 2 MiB pages. An
 * empty slab is freed.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stddef.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/memory/block.h"

/* Addresses and sizes of blocks are multiples of this. */
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

/* Returns true if a block is registered memory on a machine with one memory. It is anonymous memory
 * of the process, which counts there already, so it is not charged again. */
bool sim_alloc_is_anonymous(const struct sim_block *block);

/* Frees a block of kind HOST with its memory. Removes a block of kind REGISTERED without freeing
 * its memory. */
void sim_alloc_destroy_pinned(struct sim_block *block);

/* Unmaps a block of kind IPC and removes it, even if it was opened more than once. */
void sim_alloc_destroy_ipc(struct sim_block *block);

/* Device memory that belongs to the driver itself: modules' globals, and the allocations of graphs.
 * The memory is charged to the device, mapped, and accessible to the device. It is not a block of
 * cuMemAlloc. CUDA_ERROR_OUT_OF_MEMORY if it does not fit. */
CUresult sim_mem_driver_alloc(struct sim_device *device, size_t size, CUdeviceptr *ret_address);
void sim_mem_driver_free(CUdeviceptr address);

/* Frees the memory that a context owns (cuda.h, cuCtxDestroy): blocks of cuMemAlloc,
 * cuMemAllocHost, cuMemAllocManaged and similar functions. Memory of cuMemCreate and of pools
 * stays. */
void sim_mem_ctx_release(CUcontext ctx);
