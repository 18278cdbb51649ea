/* A buffer of a communicator for the other ranks. In the simulator they never open it. As in NCCL,
 * with NCCL_CUMEM_ENABLE=0 the buffer is memory of cuMemAlloc with a handle of cuIpcGetMemHandle.
 * Otherwise it is memory of cuMemCreate with an exportable handle.
 *
 * Locking: a communicator is used by one thread at a time. */
#pragma once

#include <cuda.h>
#include <stddef.h>

struct sim_nccl_buffer {
    void *address;                      /* from cuMemAlloc, or NULL */
    CUmemGenericAllocationHandle chunk; /* from cuMemCreate, or 0 */
};

/* Sizes, in bytes, are multiples of this. */
enum { SIM_NCCL_BUFFER_GRANULE = 2 << 20 };

/* Allocates and exports a buffer on the device, which must be current. After an error of the
 * driver, nothing stays allocated. */
CUresult sim_nccl_buffer_open(struct sim_nccl_buffer *ret_buffer, CUdevice device, size_t bytes);

/* Frees a buffer; does nothing for a zeroed one. */
void sim_nccl_buffer_close(struct sim_nccl_buffer *buffer);
