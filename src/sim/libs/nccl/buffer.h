/* A buffer that a communicator shares with the other ranks. In the simulator, the other ranks never
 * open it. As in NCCL, the buffer is memory of cuMemCreate with an exportable handle. With
 * NCCL_CUMEM_ENABLE=0, the buffer is memory of cuMemAlloc with a handle of cuIpcGetMemHandle.
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

/* Allocates and exports a buffer on the device, which must be current. If the driver returns an
 * error, nothing stays allocated. */
CUresult sim_nccl_buffer_open(struct sim_nccl_buffer *ret_buffer, CUdevice device, size_t bytes);

/* Frees a buffer; does nothing for a zeroed one. */
void sim_nccl_buffer_close(struct sim_nccl_buffer *buffer);
