/* A buffer of a communicator that the other ranks would open. As in NCCL,
 * NCCL_CUMEM_ENABLE=0 means memory of cuMemAlloc with a handle of cuIpcGetMemHandle, and anything
 * else memory of cuMemCreate with a handle that can be exported. Nobody opens it.
 *
 * Locking: a communicator is used by one thread at a time. */
#pragma once

#include <cuda.h>
#include <stddef.h>

struct sim_nccl_buffer {
    void *address;                      /* NULL: not of cuMemAlloc */
    CUmemGenericAllocationHandle chunk; /* 0: not of cuMemCreate */
};

/* The least size, in bytes; other sizes are multiples of it. */
enum { SIM_NCCL_BUFFER_GRANULE = 2 << 20 };

/* Makes it on a device, which is current. An error of the driver when it cannot be made or shared;
 * nothing is left then. */
CUresult sim_nccl_buffer_open(struct sim_nccl_buffer *ret_buffer, CUdevice device, size_t bytes);

/* Frees it; a buffer of zeros is left alone. */
void sim_nccl_buffer_close(struct sim_nccl_buffer *buffer);
