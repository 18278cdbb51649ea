/* A buffer of a communicator for the other ranks, which never open it here. As in NCCL,
 * NCCL_CUMEM_ENABLE=0 means memory of cuMemAlloc with a handle of cuIpcGetMemHandle. Otherwise it
 * is memory of cuMemCreate with an exportable handle.
 *
 * Locking: a communicator is used by one thread at a time. */
#pragma once

#include <cuda.h>
#include <stddef.h>

struct sim_nccl_buffer {
    void *address;                      /* NULL: not of cuMemAlloc */
    CUmemGenericAllocationHandle chunk; /* 0: not of cuMemCreate */
};

/* Sizes, in bytes, are multiples of this. */
enum { SIM_NCCL_BUFFER_GRANULE = 2 << 20 };

/* Allocates and exports a buffer on the device, which must be current. On an error of the driver,
 * frees it again. */
CUresult sim_nccl_buffer_open(struct sim_nccl_buffer *ret_buffer, CUdevice device, size_t bytes);

/* Frees a buffer; does nothing for a zeroed one. */
void sim_nccl_buffer_close(struct sim_nccl_buffer *buffer);
