/* A loop that some allocators grow without bound in: two large blocks and a small one, which stays
 * while the large ones go, a hundred times.
 *
 *     pathology [SEED]
 *
 * Without a seed the sizes are those of the report: 91 and 45.5 MiB, and 2 MiB that stay. With one
 * they are drawn, each time anew, and so is when small blocks go and whether blocks are freed in
 * order. Exit 1 when an allocation fails. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CYCLES = 100, MIB = 1 << 20 };

static CUstream stream;
static uint64_t state;

static uint64_t draw(uint64_t bound)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % bound;
}

static void must(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "pathology: %s: %d\n", call, result);
        exit(1);
    }
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr block = 0;

    must(cuMemAllocAsync(&block, bytes, stream), "cuMemAllocAsync");
    must(cuMemsetD8Async(block, 1, 1, stream), "cuMemsetD8Async");
    return block;
}

static void release(CUdeviceptr block)
{
    must(cuMemFreeAsync(block, stream), "cuMemFreeAsync");
}

int main(int argc, char **argv)
{
    CUdeviceptr kept[CYCLES], large, half;
    CUcontext context = NULL;
    size_t count = 0;

    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (int i = 0; i < CYCLES; i++) {
        size_t bytes = argc > 1 ? (8 + draw(120)) * MIB + draw(MIB) : 91 * MIB;
        size_t small = argc > 1 ? MIB / 2 + draw(4 * MIB) : 2 * MIB;

        large = allocate(bytes);
        half = allocate(bytes / 2);
        kept[count++] = allocate(small);
        if (argc > 1 && draw(2) == 0) {
            release(half);
            release(large);
        } else {
            release(large);
            release(half);
        }
        if (argc > 1 && draw(3) == 0) {
            size_t gone = draw(count);

            release(kept[gone]);
            kept[gone] = kept[--count];
        }
    }
    must(cuStreamSynchronize(stream), "cuStreamSynchronize");
    return 0;
}
