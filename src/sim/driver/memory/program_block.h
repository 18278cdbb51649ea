/* Blocks that the program got from cudaMalloc() and similar functions, as the simulated runtime
 * reports them, or from PyTorch's allocator with spillway inside, as spillway reports them. If a
 * pool in front of the driver divides chunks into blocks, the driver itself knows only the chunks.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

/* The number of bytes from an address to the end of the block that contains the address; 0 if no
 * block contains it. */
size_t sim_program_block_rest(CUdeviceptr address);

/* The size in bytes of the block that contains an address; 0 if no block contains it. */
size_t sim_program_block_bytes(CUdeviceptr address);

/* True if the runtime has ever reported a block. */
bool sim_program_block_any(void);
