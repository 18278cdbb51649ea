/* Memory pools: stream-ordered allocation.
 *
 * A pool takes regions from the device and cuts blocks from the regions. A region has at least 32
 * MiB, if 32 MiB are free. A block that was freed on a stream may be reused immediately on the same
 * stream. Other streams may reuse the block when the free has been executed. Until the free is
 * executed, the block stays valid for work that was queued before the free.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/core/heap.h"
#include "sim/driver/memory/block.h"

struct sim_queued_free;

struct CUmemPoolHandle_st {
    struct CUmemPoolHandle_st *next; /* list of all pools */
    struct sim_device *device;
    CUmemPoolProps props;
    bool is_default;
    bool destroyed; /* freed with its last block */
    int reuse[3];   /* CU_MEMPOOL_ATTR_REUSE_*: stored, without effect */
    uint64_t threshold;
    uint64_t reserved, reserved_high; /* bytes in regions */
    uint64_t used, used_high;         /* bytes in live blocks, in multiples of SIM_BLOCK_ALIGN */
    uint64_t readers, writers;        /* bit per device ordinal */
    size_t blocks;                    /* including blocks whose free is queued */
    struct sim_heap heap;
    struct sim_queued_free *queued; /* frees not yet executed, oldest first */
    struct sim_queued_free **queued_end;
};

/* The device's default pool, made at the first use; NULL if host memory is exhausted. */
CUmemoryPool sim_mempool_default(struct sim_device *device);

/* The pool that cuMemAllocAsync takes from. */
CUmemoryPool sim_mempool_current(struct sim_device *device);

/* A new pool with the default attributes; NULL if host memory is exhausted. */
CUmemoryPool sim_mempool_create(struct sim_device *device, const CUmemPoolProps *props);

/* Marks the pool as destroyed; it is freed with its last block. */
void sim_mempool_destroy(CUmemoryPool pool);

/* True if `pool` is the handle of a pool that is not destroyed. */
bool sim_mempool_is_live(CUmemoryPool pool);

/* Allocates a block for use on the stream with that id. CUDA_ERROR_OUT_OF_MEMORY if there is no
 * room now; queued frees may make room later. */
CUresult sim_mempool_alloc(CUmemoryPool pool, size_t size, unsigned long long stream,
                           struct sim_block **ret_block);

/* True if a free of the pool's memory is queued and not yet executed. */
bool sim_mempool_has_queued_frees(CUmemoryPool pool);

/* Frees a block of a pool at once. */
void sim_mempool_free_now(struct sim_block *block);

/* Frees a block in stream order: the stream with that id may reuse the block now, and other streams
 * may reuse it when the free is executed. The caller must queue sim_queued_free_execute() on the
 * stream, or cancel the free. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_mempool_queue_free(struct sim_block *block, unsigned long long stream,
                                struct sim_queued_free **ret_queued);

/* Executes a free that its stream has reached. `queued` is a struct sim_queued_free, which this
 * function frees. */
void sim_queued_free_execute(void *queued);

/* Cancels a queued free. The block is live again. May be called only directly after
 * sim_mempool_queue_free(). */
void sim_queued_free_cancel(struct sim_queued_free *queued);

/* Frees unused regions as long as at least `keep` bytes remain reserved. */
void sim_mempool_trim(CUmemoryPool pool, uint64_t keep);

/* Sets the devices that may access the pool's present and future memory. */
void sim_mempool_set_access(CUmemoryPool pool, uint64_t readers, uint64_t writers);

/* Must be called when the host has waited for a stream, an event or a context of the device. Pools
 * then free unused memory above their release threshold (cuda.h,
 * CU_MEMPOOL_ATTR_RELEASE_THRESHOLD). */
void sim_mempool_synchronized(struct sim_device *device);
