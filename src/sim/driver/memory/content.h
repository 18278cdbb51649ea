/* Simulated memory by address: checks of ranges, and reading and writing content.
 *
 * Every address handed out by the simulator is inside one of its reservations, page-locked host
 * memory or managed memory; every other address is pageable host memory of the program. The content
 * functions work on mapped memory wherever it is kept, also when the process itself may not touch
 * the address (no access set yet, or a mapping that is in the tables only).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"

enum sim_mem_kind {
    SIM_MEM_PAGEABLE, /* not of the simulator: ordinary host memory, or nothing at all */
    SIM_MEM_DEVICE,   /* in device address space: allocations, mapped chunks (host-located chunks
                       * too), and reserved but unmapped addresses */
    SIM_MEM_PINNED,   /* cuMemHostAlloc, cuMemAllocHost, cuMemHostRegister */
    SIM_MEM_MANAGED,  /* cuMemAllocManaged */
};

/* The kind of memory that an address is in. */
enum sim_mem_kind sim_mem_kind(CUdeviceptr address);

/* Short for sim_mem_kind() == SIM_MEM_DEVICE. */
bool sim_mem_is_device(CUdeviceptr address);

/* The device a valid device, pinned or managed address belongs to, -1 for pageable memory and
 * addresses that hold nothing. */
int sim_mem_device(CUdeviceptr address);

/* Checks that `device` may access all of [address, address + size): mapped, and with read (or
 * read-write) access. Else CUDA_ERROR_ILLEGAL_ADDRESS. Pinned and managed memory counts as valid,
 * pageable memory does not: where a call allows it, ask sim_mem_kind() first. size 0 is valid. */
CUresult sim_mem_check(CUdeviceptr address, size_t size, int device, bool write);

/* The bytes of a range that are in the memory of a device, and those on the host: chunks at a host
 * location, page-locked memory. Managed memory counts as a device's. Counting stops at the first
 * address that holds nothing. */
void sim_mem_locate(CUdeviceptr address, size_t size, uint64_t *ret_device_bytes,
                    uint64_t *ret_host_bytes);

/* Content. The ranges were checked by the caller; a hole is read as zeros and not written. Pageable
 * addresses are accessed directly. sim_mem_copy() allows overlap only within one direct range.
 * Large ranges of device memory are zeroed instead when content takes too much of the host's memory
 * (payload.h). */
void sim_mem_read(void *dst, CUdeviceptr src, size_t size);
void sim_mem_write(CUdeviceptr dst, const void *src, size_t size);
void sim_mem_copy(CUdeviceptr dst, CUdeviceptr src, size_t size);

/* Repeats the low `width` (1, 2 or 4) bytes of `pattern` over `size` bytes (a multiple of width).
 * Zeros on untouched memory commit no host memory. */
void sim_mem_fill(CUdeviceptr dst, uint32_t pattern, unsigned int width, size_t size);

/* True if the content of a range is known (known.h): that of host memory is. */
bool sim_mem_is_known(CUdeviceptr address, size_t size);

/* Says that the content of a range is known, or that it is not. */
void sim_mem_set_known(CUdeviceptr address, size_t size, bool is_known);

/* Says that something unknown may have been written at an address and behind: `size` bytes, and the
 * known content from there on without a gap, are known no more. */
void sim_mem_lose(CUdeviceptr address, size_t size);

/* How much of a range takes memory of the host as content of device memory. */
size_t sim_mem_content(CUdeviceptr address, size_t size);

/* Lets go of the content of a range of device memory that was freed but stays mapped. */
void sim_mem_discard(CUdeviceptr address, size_t size);
