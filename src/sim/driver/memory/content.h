/* Simulated memory: addresses, chunks, mappings, pools, content. It does not know how work runs.
 *
 *   alloc           blocks outside of pools
 *   backing         files that hold the content
 *   block           all allocations, by address
 *   chunk           physical allocations and their handles
 *   content         reads and writes memory by address, and checks ranges
 *   known           marks memory whose content is the same as on a GPU
 *   mapping         maps chunks at addresses, for chosen devices
 *   mempool         stream-ordered allocation
 *   payload         the limit on host memory for content
 *   program_block   blocks of the program inside larger chunks
 *   region          device memory that the driver allocates for itself, in whole granules
 *   space           reservations of device addresses
 *
 * An address of the simulator lies in a reservation, in page-locked host memory or in managed
 * memory. Every other address is pageable host memory of the program. The content functions work on
 * all mapped memory, even if the process itself may not touch the address (no access set yet, or a
 * mapping that is in the tables only).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"

enum sim_mem_kind {
    SIM_MEM_PAGEABLE, /* not an address of the simulator: ordinary host memory, or unmapped */
    SIM_MEM_DEVICE,   /* in device address space: allocations, mapped chunks at any location, and
                       * reserved but unmapped addresses */
    SIM_MEM_PINNED,   /* cuMemHostAlloc, cuMemAllocHost, cuMemHostRegister */
    SIM_MEM_MANAGED,  /* cuMemAllocManaged */
};

/* The kind of memory that an address is in. */
enum sim_mem_kind sim_mem_kind(CUdeviceptr address);

/* Short for sim_mem_kind() == SIM_MEM_DEVICE. */
bool sim_mem_is_device(CUdeviceptr address);

/* The device of a valid device, pinned or managed address; -1 for pageable memory and addresses
 * without memory. */
int sim_mem_device(CUdeviceptr address);

/* Checks that `device` may access all of [address, address + size): the range must be mapped with
 * read access or, for writes, read-write access. Returns CUDA_ERROR_ILLEGAL_ADDRESS if not. Pinned
 * and managed memory is always valid. Pageable memory is never valid, so callers that allow
 * pageable memory must call sim_mem_kind() first. Size 0 is valid. */
CUresult sim_mem_check(CUdeviceptr address, size_t size, int device, bool write);

/* Counts the bytes of a range that lie on the device, and the bytes that lie on the host (chunks at
 * host locations, page-locked memory). Managed memory counts as device memory. Counting stops at
 * the first address without memory. */
void sim_mem_locate(CUdeviceptr address, size_t size, uint64_t *ret_device_bytes,
                    uint64_t *ret_host_bytes);

/* Read and write content. The caller has checked the ranges; reserved addresses without memory read
 * as zeros and are not written. Pageable addresses are accessed directly. sim_mem_copy() allows
 * overlap only if both ranges are host or managed memory. At the limit of payload.h, large ranges
 * of device memory are zeroed instead of written. */
void sim_mem_read(void *dst, CUdeviceptr src, size_t size);
void sim_mem_write(CUdeviceptr dst, const void *src, size_t size);
void sim_mem_copy(CUdeviceptr dst, CUdeviceptr src, size_t size);

/* Repeats the low `width` (1, 2 or 4) bytes of `pattern` over `size` bytes (a multiple of width).
 * Zeros on untouched memory commit no host memory. */
void sim_mem_fill(CUdeviceptr dst, uint32_t pattern, unsigned int width, size_t size);

/* True if the content of a range is known (known.h). Content of host memory is always known. */
bool sim_mem_is_known(CUdeviceptr address, size_t size);

/* Marks the content of a range as known or unknown. */
void sim_mem_set_known(CUdeviceptr address, size_t size, bool is_known);

/* Must be called after a write of unknown size that began at an address. Marks the `size` bytes
 * from this address as unknown, and also the known content that follows without a gap. */
void sim_mem_lose(CUdeviceptr address, size_t size);

/* Drops the content of a range of device memory that was freed but stays mapped. */
void sim_mem_discard(CUdeviceptr address, size_t size);
