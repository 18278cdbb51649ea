/* The blocks that the program holds, as far as the simulated runtime tells them: those it was given
 * by cudaMalloc() and the like. The driver itself may know chunks only, from which something in
 * front of it cuts the blocks.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

/* The bytes from an address in a block to the end of that block; 0: it is in none. */
size_t sim_program_block_rest(CUdeviceptr address);

/* The bytes of the block that an address is in; 0: it is in none. */
size_t sim_program_block_bytes(CUdeviceptr address);

/* True if the runtime has ever told of a block. */
bool sim_program_block_any(void);
