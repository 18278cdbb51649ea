/* Nanoseconds of an allocate/free pair, beside more and more live blocks: "name number" lines.
 * Sizes repeat in a short cycle, as in training, so every pair finds its memory ready. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 300000, SIZES = 8 };

static const size_t sizes[SIZES] = {512, 8192, 3 << 20, 70000, 1 << 20, 2 << 20, 40000, 12 << 20};

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}

/* Time of the processor, as other work on the machine would disturb the clock's. */
static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double time_ordered(CUstream stream)
{
    CUdeviceptr block = 0;
    double begin = now_ns();

    for (int i = 0; i < ROUNDS; i++) {
        must(cuMemAllocAsync(&block, sizes[i % SIZES], stream), "cuMemAllocAsync");
        must(cuMemFreeAsync(block, stream), "cuMemFreeAsync");
    }
    return (now_ns() - begin) / ROUNDS;
}

int main(void)
{
    static const int live_counts[] = {0, 1000, 10000, 100000};
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUdeviceptr block = 0;
    int live = 0;

    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (size_t i = 0; i < sizeof(live_counts) / sizeof(live_counts[0]); i++) {
        for (; live < live_counts[i]; live++) {
            must(cuMemAllocAsync(&block, 512 + (size_t)(live % 97) * 1024, stream), "live block");
        }
        (void)time_ordered(stream);
        printf("cuMemAllocAsync + cuMemFreeAsync, %d live %.3f\n", live, time_ordered(stream));
    }
    return 0;
}
