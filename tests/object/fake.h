/* The stand-ins for PyTorch's libraries (torch/lib/). They have the pointer to the allocator object
 * under PyTorch's name. Tests set and read the rest. */
#pragma once

#include "torch/abi.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#pragma GCC visibility push(default)

/* c10::cuda::CUDACachingAllocator::allocator. */
typedef void fake_code(void);

struct fake_object {
    fake_code *const *_Atomic table;
};
extern struct fake_object *_Atomic
    fake_allocator __asm__("_ZN3c104cuda20CUDACachingAllocator9allocatorE");

/* The stream of this thread. */
void fake_set_stream(cudaStream_t stream);

/* The blocks that the native allocator has given out and did not get back. */
int fake_native_count(void);

/* The number of times that it asked for memory. */
int fake_native_asked(void);

/* Sets the pointer where FAKE_TORCH=late left it NULL. */
void fake_arrive(void);

extern bool fake_profiled; /* the profiler is told */
extern bool fake_traced __asm__("_ZN3c104impl8GPUTrace9haveStateE");
extern _Atomic int64_t fake_reported; /* bytes that the profiler was told of, less those freed */

/* What setCheckpointPoolState makes anew in a private pool. */
struct fake_checkpoint {
    struct spw_torch_pool_id pool;
    int count;
    size_t bytes;
};

/* C++'s operators of memory. */
void *fake_new(size_t bytes) __asm__("_Znwm");
void fake_delete(void *memory) __asm__("_ZdlPv");

#pragma GCC visibility pop
