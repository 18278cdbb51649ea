/* The private pools of PyTorch's native allocator: torch.cuda.MemPool, and those of CUDA graphs and
 * of their warm-up.
 *
 * No call tells about them. But while the allocator asks for memory, an object in one of its frames
 * (AllocParams of c10/cuda/CUDACachingAllocator.cpp) holds the size and the address of the pool,
 * and a pool holds its owner. Seen in PyTorch 2.11. A pool is recognised by its whole
 * structure: where it looks different, nothing is known. Locking: none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True if PyTorch's allocator, which has called cudaMalloc for `bytes` on this thread, is known to
 * want them for a private pool. */
bool spw_track_private_pool(uint64_t bytes);
