/* Helpers of the programs in this folder. Each ends the program with status 1 and one line on
 * stdout when a call of the driver fails. */
#pragma once

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* Ends the program if a call of the driver fails. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult must = (call);                                                                    \
                                                                                                   \
        if (must != CUDA_SUCCESS) {                                                                \
            printf("%s:%d: %s = %d\n", __FILE__, __LINE__, #call, (int)must);                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Makes the primary context of a device current and loads a module with all kernels of the
 * simulated GPU into it. */
static inline CUcontext enter_device(CUdevice device, CUmodule *ret_module)
{
    CUcontext context;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(ret_module, "any image will do"));
    return context;
}

/* Allocates a block and sets each of its words to 1000 times `number`. Returns that value. */
static inline uint32_t new_block(CUdeviceptr *ret_block, int number, size_t words, CUstream stream)
{
    uint32_t value = (uint32_t)number * 1000;

    MUST(cuMemAllocAsync(ret_block, words * sizeof(value), stream));
    MUST(cuMemsetD32Async(*ret_block, value, words, stream));
    return value;
}

/* Returns how many words of a block differ from `expected`. */
static inline size_t count_wrong(CUdeviceptr block, size_t words, uint32_t expected)
{
    uint32_t *content = malloc(words * sizeof(*content));
    size_t wrong = 0;

    MUST(cuMemcpyDtoH(content, block, words * sizeof(*content)));
    for (size_t i = 0; i < words; i++) {
        wrong += content[i] != expected;
    }
    free(content);
    return wrong;
}

/* Launches a kernel that adds 1 to each word of a block. `first` points to the argument by which
 * the kernel finds the block. */
static inline void launch_add(CUfunction kernel, void *first, size_t words, CUstream stream)
{
    uint32_t one = 1;
    void *params[] = {first, &words, &one};

    MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

/* Describes the words of a block by a tensor map. */
static inline void describe_block(CUtensorMap *ret_map, CUdeviceptr block, size_t words)
{
    const cuuint64_t dims[] = {words}, strides[] = {words * sizeof(uint32_t)};
    const cuuint32_t box[] = {32}, steps[] = {1};

    MUST(cuTensorMapEncodeTiled(ret_map, CU_TENSOR_MAP_DATA_TYPE_INT32, 1, (void *)(uintptr_t)block,
                                dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

/* Waits until another thread has counted one more turn, however busy the machine is. */
static inline void await_turn(_Atomic int *turns)
{
    int before = atomic_load(turns);

    while (atomic_load(turns) == before) {
        usleep(100);
    }
}

/* Waits for the device and gives the free memory of its default pool back. */
static inline void trim_pool(void)
{
    CUmemoryPool pool;

    MUST(cuCtxSynchronize());
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolTrimTo(pool, 0));
}
