/* Memory that holds addresses. A kernel that gets such memory as an argument may read an address
 * from it, and access memory that the arguments do not name. Such memory is one of these:
 *
 *  - A block of ours. It counts as holding addresses after a copy from the host brought the address
 *    of a live block of ours, or after a copy from another block that holds addresses. It counts
 *    until it is freed. Copies are examined while memory is short, up to SPW_INDIRECT_MOST bytes.
 *    Larger copies count as data.
 *  - Page-locked or managed memory, because the program writes to it without a call.
 *
 * If addresses were copied to device memory that is not ours, such as a global of a module, every
 * later launch counts as accessing all memory.
 *
 * Three kinds of addresses are not found: addresses that a kernel or a memset writes, addresses
 * that were copied before memory was short, and addresses in pageable memory that a device reads.
 *
 * Locking: spw_locks.indirect; pools are called without it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"
#include "program/spans.h"
#include "submit/cut.h"

enum { SPW_INDIRECT_MOST = 1 << 20 };

/* Returns true if the memory at `address` may hold addresses. `ours`: it is in one of our pools. */
bool spw_submit_indirect_at(uint64_t address, bool ours);

/* Returns true if addresses were copied to a place where every launch may find them. No lock. */
bool spw_submit_indirect_everywhere(void);

/* Examines a copy of `bytes` that is about to be submitted. Both ends may be host or device memory.
 * If the source cannot be read, the copy counts as copying addresses. */
void spw_submit_indirect_copy(uint64_t to, uint64_t from, size_t bytes);

/* Examine a copy of rows or of a volume (rows.h), or several copies. NULL is ignored. */
void spw_submit_indirect_copy_box(struct spw_cut_box box);
void spw_submit_indirect_copy_batch(const CUdeviceptr *to, const CUdeviceptr *from,
                                    const size_t *bytes, size_t count);
void spw_submit_indirect_copy_3d_batch(const CUDA_MEMCPY3D_BATCH_OP *copies, size_t count);

/* Forgets a block of ours that is about to be freed. */
void spw_submit_indirect_freed(uint64_t address);

/* Record that page-locked or managed memory was allocated, or that it is about to be freed. The
 * second returns false if the memory was not known. */
void spw_submit_indirect_mapped(uint64_t address, uint64_t bytes);
bool spw_submit_indirect_unmapped(uint64_t address, struct spw_span *ret_span);

/* In a child after fork: forgets everything. */
void spw_submit_indirect_reset(void);
