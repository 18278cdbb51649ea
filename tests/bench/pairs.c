/* Nanoseconds of an allocate/free pair that finds its memory ready, for a program in another
 * language: what a call costs there, with that program's stack below it. */
#include <cuda.h>
#include <stdlib.h>
#include <time.h>

/* The median of the means of batches, beside `live` blocks, on one thread; negative when a call
 * fails. Blocks are of 512 bytes to 12 MiB. */
__attribute__((visibility("default"))) double pairs(int live);

enum { BATCH = 32, SAMPLES = 4000, SIZES = 6 };

static const size_t sizes[SIZES] = {512, 8192, 70000, 1 << 20, 3 << 20, 12 << 20};

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static int batch(CUstream stream, double *ret_ns)
{
    double begin = now_ns();
    int failed = 0;

    for (int i = 0; i < BATCH; i++) {
        CUdeviceptr block = 0;

        failed |= cuMemAllocAsync(&block, sizes[i % SIZES], stream) != CUDA_SUCCESS;
        failed |= cuMemFreeAsync(block, stream) != CUDA_SUCCESS;
    }
    *ret_ns = (now_ns() - begin) / BATCH;
    return failed;
}

double pairs(int live)
{
    static double samples[SAMPLES];
    CUcontext context;
    CUdeviceptr block;
    CUstream stream;
    int failed = cuInit(0) != CUDA_SUCCESS ||
                 cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
                 cuCtxSetCurrent(context) != CUDA_SUCCESS ||
                 cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;

    for (int i = 0; i < live && !failed; i++) {
        failed = cuMemAllocAsync(&block, 8192, stream) != CUDA_SUCCESS;
    }
    for (int i = -SAMPLES / 4; i < SAMPLES && !failed; i++) {
        failed = batch(stream, &samples[i < 0 ? 0 : i]);
    }
    qsort(samples, SAMPLES, sizeof(samples[0]), compare);
    return failed ? -1 : samples[SAMPLES / 2];
}
