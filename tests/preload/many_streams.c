/* Makes streams, allocates and frees on each of them, and destroys them, several times.
 *
 *     many_streams STREAMS ROUNDS
 *
 * Prints after each round how many bytes of host memory malloc has given out, beyond those before
 * the first. */
#include <cuda.h>
#include <malloc.h>

#include "check.h"

static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void use(CUstream stream)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, 4096, stream));
    MUST(cuMemFreeAsync(block, stream));
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 1;
    CUstream *streams = calloc((size_t)count, sizeof(*streams));
    CUcontext context;
    size_t before;

    HOLD(streams != NULL);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    use(NULL);
    before = in_use();
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
            use(streams[i]);
        }
        for (int i = 0; i < count; i++) {
            use(streams[i]);
        }
        printf("%zu", in_use() - before);
        for (int i = 0; i < count; i++) {
            MUST(cuStreamDestroy(streams[i]));
        }
        MUST(cuCtxSynchronize());
        printf(" %zu\n", in_use() - before);
    }
    free(streams);
    return 0;
}
