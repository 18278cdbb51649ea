/* A program whose memory must migrate while a kernel runs that ends only by a later submission.
 *
 *     beside nothing   the kernel uses nothing of what is moved
 *     beside half      others behind it use the older half of the blocks
 *     beside third     others behind it use every third block
 *     beside maps      as `half`, by tensor maps
 *     beside all-maps  others behind it use all of them by tensor maps
 *     beside all       others behind it use all of them
 *     beside unknown   behind it is work of which nobody knows what it uses
 *
 * Made for a device of 64 MiB. Exit 0 when all content is right. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

enum { COLD = 14, COLD_BYTES = 3 * MIB + 512, COLD_WORDS = COLD_BYTES / 4 };
enum { HOT_BYTES = 9 * MIB, HOTS = 4, AGE = 80, PASS = 64 };

static CUfunction add_kernel, map_kernel, spin_kernel;
static CUstream main_stream, side_stream;
static CUdeviceptr cold[COLD];
static uint32_t expected[COLD];

static void start(void)
{
    CUmodule module;

    enter_device(0, &module);
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuModuleGetFunction(&map_kernel, module, "spw_add_by_map"));
    MUST(cuModuleGetFunction(&spin_kernel, module, "spw_spin"));
    MUST(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side_stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < COLD; i++) {
        expected[i] = new_block(&cold[i], i, COLD_WORDS, main_stream);
    }
    MUST(cuCtxSynchronize());
    for (int i = 0; i < AGE; i++) {
        CUdeviceptr brief;

        MUST(cuMemAllocAsync(&brief, 512, main_stream));
        MUST(cuMemFreeAsync(brief, main_stream));
    }
}

/* Allocates more than the device has room for beside the cold blocks. */
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

/* Waits for the device, and makes calls at which spillway can notice that. */
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

/* `first` is the argument by which the kernel finds the block. */
static void launch(CUfunction kernel, void *first, int block)
{
    launch_add(kernel, first, COLD_WORDS, side_stream);
    expected[block]++;
}

static void use(int blocks, int step)
{
    for (int i = 0; i < blocks; i += step) {
        launch(add_kernel, &cold[i], i);
    }
}

static void use_by_maps(int blocks)
{
    CUtensorMap map;

    for (int i = 0; i < blocks; i++) {
        describe_block(&map, cold[i], COLD_WORDS);
        launch(map_kernel, &map, i);
    }
}

/* So much happens that what was used before is cold again, though the device has not used it yet.
 */
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
    size_t wrong = 0;

    for (int i = 0; i < COLD; i++) {
        wrong += count_wrong(cold[i], COLD_WORDS, expected[i]);
        MUST(cuMemFreeAsync(cold[i], main_stream));
    }
    MUST(cuCtxSynchronize());
    printf("%zu words wrong\n", wrong);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    CUdeviceptr flag;
    void *params[] = {&flag};
    int status;

    start();
    MUST(cuMemAllocAsync(&flag, sizeof(uint32_t), main_stream));
    allocate(HOTS - 1);
    pass(flag);
    MUST(cuLaunchKernel(spin_kernel, 1, 1, 1, 1, 1, 1, 0, side_stream, params, NULL));
    if (strcmp(mode, "half") == 0) {
        use(COLD / 2, 1);
    } else if (strcmp(mode, "third") == 0) {
        use(COLD, 3);
    } else if (strcmp(mode, "maps") == 0) {
        use_by_maps(COLD / 2);
    } else if (strcmp(mode, "all-maps") == 0) {
        use_by_maps(COLD);
    } else if (strcmp(mode, "all") == 0) {
        use(COLD, 1);
    } else if (strcmp(mode, "unknown") == 0) {
        MUST(cuLaunchHostFunc(side_stream, nothing, NULL));
    }
    grow_cold();
    allocate(HOTS);
    MUST(cuMemsetD32Async(flag, 1, 1, main_stream));
    MUST(cuCtxSynchronize());
    status = check();
    MUST(cuMemFree(flag));
    trim_pool();
    return status;
}
