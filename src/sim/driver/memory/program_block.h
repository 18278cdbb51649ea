/* Blocks that the program got from cudaMalloc() and similar functions, as the simulated runtime
 * reports them. The driver may know only larger chunks, which a pool in front of the driver divides
 * into blocks.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

/* The bytes from an address to the end of the block that contains it; 0 if no block does. */
size_t sim_program_block_rest(CUdeviceptr address);

/* The bytes of the block that contains an address; 0 if no block does. */
size_t sim_program_block_bytes(CUdeviceptr address);

/* True if the runtime has ever reported a block. */
bool sim_program_block_any(void);
