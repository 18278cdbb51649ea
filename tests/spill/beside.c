/* Moves memory while a kernel runs that ends only after a later submission.
 *
 *     beside nothing   the kernel uses none of the moved memory
 *     beside half      kernels queued behind it use the older half of the blocks
 *     beside maps      as half, by tensor maps
 *     beside all-maps  kernels queued behind it use all blocks by tensor maps
 *     beside all       kernels queued behind it use all blocks
 *     beside unknown   work queued behind it uses unknown memory
 *
 * Made for a device of 64 MiB. Exit status 0 when all content is right. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, COLD = 14, COLD_BYTES = 3 * MIB + 512, COLD_WORDS = COLD_BYTES / 4 };
enum { HOT_BYTES = 9 * MIB, HOTS = 4, AGE = 80, PASS = 64 };

static CUfunction add_kernel, map_kernel, spin_kernel;
static CUstream main_stream, side_stream;
static CUdeviceptr cold[COLD];
static uint32_t expected[COLD];

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult must = (call);                                                                    \
                                                                                                   \
        if (must != CUDA_SUCCESS) {                                                                \
            printf("line %d: %s = %d\n", __LINE__, #call, (int)must);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void start(void)
{
    CUcontext context;
    CUmodule module;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuModuleGetFunction(&map_kernel, module, "spw_add_by_map"));
    MUST(cuModuleGetFunction(&spin_kernel, module, "spw_spin"));
    MUST(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side_stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < COLD; i++) {
        MUST(cuMemAllocAsync(&cold[i], COLD_BYTES, main_stream));
        MUST(cuMemsetD32Async(cold[i], (unsigned)i * 1000, COLD_WORDS, main_stream));
        expected[i] = (uint32_t)i * 1000;
    }
    MUST(cuCtxSynchronize());
    for (int i = 0; i < AGE; i++) {
        CUdeviceptr brief;

        MUST(cuMemAllocAsync(&brief, 512, main_stream));
        MUST(cuMemFreeAsync(brief, main_stream));
    }
}

/* Allocates more than fits beside the cold blocks. */
static void allocate(int count)
{
    CUdeviceptr hot[HOTS];

    for (int i = 0; i < count; i++) {
        MUST(cuMemAllocAsync(&hot[i], HOT_BYTES, main_stream));
        MUST(cuMemsetD8Async(hot[i], 0xaa, HOT_BYTES, main_stream));
    }
    for (int i = 0; i < count; i++) {
        MUST(cuMemFreeAsync(hot[i], main_stream));
    }
}

/* Lets the device complete its work, and makes calls that notice this. */
static void pass(CUdeviceptr word)
{
    for (int i = 0; i < PASS; i++) {
        MUST(cuMemsetD32Async(word, 0, 1, main_stream));
        if (i == PASS / 2) {
            MUST(cuCtxSynchronize());
        }
    }
}

static void nothing(void *cookie)
{
}

/* `first` is the block's first argument to the kernel. */
static void launch(CUfunction kernel, void *first, int block)
{
    size_t words = COLD_WORDS;
    uint32_t one = 1;
    void *params[] = {first, &words, &one};

    MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, side_stream, params, NULL));
    expected[block]++;
}

static void use(int blocks)
{
    for (int i = 0; i < blocks; i++) {
        launch(add_kernel, &cold[i], i);
    }
}

static void use_by_maps(int blocks)
{
    const cuuint64_t dims[] = {COLD_WORDS}, strides[] = {COLD_BYTES};
    const cuuint32_t box[] = {32}, steps[] = {1};
    CUtensorMap map;

    for (int i = 0; i < blocks; i++) {
        MUST(cuTensorMapEncodeTiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 1, (void *)(uintptr_t)cold[i], dims, strides, box,
            steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        launch(map_kernel, &map, i);
    }
}

/* Submits enough work that blocks used before are cold again, although the device has not run it
 * yet. */
static void grow_cold(void)
{
    for (int i = 0; i < AGE; i++) {
        CUdeviceptr brief;

        MUST(cuMemAllocAsync(&brief, 4 * MIB, main_stream));
        MUST(cuMemsetD32Async(brief, 1, 1, main_stream));
        MUST(cuMemFreeAsync(brief, main_stream));
    }
}

static int check(void)
{
    uint32_t *words = malloc(COLD_BYTES);
    int wrong = 0;

    for (int i = 0; i < COLD; i++) {
        MUST(cuMemcpyDtoH(words, cold[i], COLD_BYTES));
        for (int w = 0; w < COLD_WORDS; w++) {
            wrong += words[w] != expected[i];
        }
        MUST(cuMemFreeAsync(cold[i], main_stream));
    }
    MUST(cuCtxSynchronize());
    free(words);
    printf("%d words wrong\n", wrong);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    CUdeviceptr flag;
    void *params[] = {&flag};
    CUmemoryPool pool;
    int status;

    start();
    MUST(cuMemAllocAsync(&flag, sizeof(uint32_t), main_stream));
    allocate(HOTS - 1);
    pass(flag);
    MUST(cuLaunchKernel(spin_kernel, 1, 1, 1, 1, 1, 1, 0, side_stream, params, NULL));
    if (strcmp(mode, "half") == 0) {
        use(COLD / 2);
    } else if (strcmp(mode, "maps") == 0) {
        use_by_maps(COLD / 2);
    } else if (strcmp(mode, "all-maps") == 0) {
        use_by_maps(COLD);
    } else if (strcmp(mode, "all") == 0) {
        use(COLD);
    } else if (strcmp(mode, "unknown") == 0) {
        MUST(cuLaunchHostFunc(side_stream, nothing, NULL));
    }
    grow_cold();
    allocate(HOTS);
    MUST(cuMemsetD32Async(flag, 1, 1, main_stream));
    MUST(cuCtxSynchronize());
    status = check();
    MUST(cuMemFree(flag));
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolTrimTo(pool, 0));
    return status;
}
