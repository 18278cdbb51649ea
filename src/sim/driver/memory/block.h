/* Blocks: the allocations that CUDA's functions have returned, by address.
 *
 * Blocks of cuMemAlloc, of pools and of the driver itself lie in regions (region.h). Blocks of
 * managed and page-locked host memory are ordinary memory of the process. Mappings of the
 * application (cuMemMap) are not blocks.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/core/rangemap.h"
#include "sim/driver/memory/mapping.h"

struct sim_queued_free; /* mempool.c */

enum sim_block_kind {
    SIM_BLOCK_ALLOC,      /* cuMemAlloc */
    SIM_BLOCK_DRIVER,     /* modules, graphs: sim_mem_driver_alloc() */
    SIM_BLOCK_POOL,       /* cuMemAllocAsync */
    SIM_BLOCK_IPC,        /* cuIpcOpenMemHandle */
    SIM_BLOCK_MANAGED,    /* cuMemAllocManaged */
    SIM_BLOCK_HOST,       /* cuMemHostAlloc, cuMemAllocHost */
    SIM_BLOCK_REGISTERED, /* cuMemHostRegister */
};

struct sim_block {
    struct sim_range range; /* for device kinds, rounded up to SIM_BLOCK_ALIGN */
    enum sim_block_kind kind;
    uint64_t size;         /* as requested */
    uint64_t span;         /* bytes taken from a region or a heap; host kinds: bytes charged */
    unsigned long long id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    struct sim_device *device;
    CUcontext ctx;                  /* owner; NULL: no context owns it */
    struct sim_mapping *region;     /* ALLOC and DRIVER: its own region, NULL if in a slab; IPC: its
                                     * mapping */
    CUmemoryPool pool;              /* POOL */
    struct sim_queued_free *queued; /* POOL: the queued free, if any; the block is then valid only
                                     * for earlier work */
    bool freeing;                   /* ALLOC, MANAGED: a stream-ordered free is queued */
    unsigned int flags; /* host kinds: as given to cuMemHostAlloc or cuMemHostRegister */
    unsigned int opens; /* IPC: number of opens */
    int ipc_pid;        /* IPC: the exporting process */
    uint64_t ipc_id;    /* IPC: id of the block in that process */
    bool sync_memops;   /* cuPointerSetAttribute */
};

/* Adds a block with `range` valid bytes for a request of `size` bytes. The range must be free. NULL
 * if host memory is exhausted. */
struct sim_block *sim_block_new(enum sim_block_kind kind, uint64_t start, uint64_t range,
                                uint64_t size);

/* Removes the block and frees it. */
void sim_block_delete(struct sim_block *block);

/* Moves the start of the block up by `bytes`, which is less than the size of its range. */
void sim_block_shrink(struct sim_block *block, uint64_t bytes);

/* sim_block_find(): the block that contains the address, or NULL. sim_block_from(): the block that
 * contains the address or, if none does, the next block above. Both functions also find blocks
 * whose free is queued. */
struct sim_block *sim_block_find(uint64_t address);
struct sim_block *sim_block_from(uint64_t address);

/* True if the block is memory of the process and not of a region. */
bool sim_block_is_host(const struct sim_block *block);
