/* Launches that reach memory which their arguments do not name, as far as they can be told: those
 * by which a kernel finds addresses in memory. A kernel's name may say so (kernel_name.h), and so
 * do its arguments:
 *
 *  - a block of ours that holds addresses. A copy from the host that brought the address of a live
 *    block of ours makes it one, and a copy from such a block does; it is one until it is freed.
 *    Copies are looked at while memory is short, up to SPW_INDIRECT_MOST: what is larger is data.
 *  - page-locked or managed memory, which the program writes to without a call.
 *
 * Where addresses go to memory of the device that is not ours, as to a global of a module, every
 * launch counts as reaching everything from then on. What is not seen: addresses that a kernel or
 * a memset writes, those copied before memory was short, pageable memory that a device reads.
 *
 * Locking: a mutex inside; the pools' are taken outside of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"
#include "track/spans.h"

enum { SPW_INDIRECT_MOST = 1 << 20 };

/* Whether memory that is named by `address`, `ours` or not, may hold addresses. */
bool spw_track_indirect_at(uint64_t address, bool ours);

/* Whether addresses went where every launch may find them. No lock. */
bool spw_track_indirect_everywhere(void);

/* A copy of `bytes` is about to be submitted; either end may be of the host or the device. Memory
 * that may not be readable is not read. */
void spw_track_indirect_copy(uint64_t to, uint64_t from, size_t bytes);

/* The same for rows of an array or a volume, and for several copies at once. NULL is let pass. */
void spw_track_indirect_copy_2d(const CUDA_MEMCPY2D *copy);
void spw_track_indirect_copy_3d(const CUDA_MEMCPY3D *copy);
void spw_track_indirect_copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy);
void spw_track_indirect_copy_batch(const CUdeviceptr *to, const CUdeviceptr *from,
                                   const size_t *bytes, size_t count);
void spw_track_indirect_copy_3d_batch(const CUDA_MEMCPY3D_BATCH_OP *copies, size_t count);

/* A block of ours at `address` is about to end. */
void spw_track_indirect_freed(uint64_t address);

/* Page-locked or managed memory begins, and is about to end: false when it was not known. */
void spw_track_indirect_mapped(uint64_t address, uint64_t bytes);
bool spw_track_indirect_unmapped(uint64_t address, struct spw_span *ret_span);

/* In a child after fork: nothing known in the child. */
void spw_track_indirect_reset(void);
