/* Nanoseconds of driver calls that spillway passes on, one "name number" line each. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 200000 };

static CUstream stream;
static CUdeviceptr block;

static void must(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "pass_speed: %s: %d\n", call, result);
        exit(1);
    }
}

/* CPU time: other work on the machine would disturb wall time. */
static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void ask_context(void)
{
    CUcontext context;

    must(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
}

static void ask_stream(void)
{
    must(cuStreamQuery(stream), "cuStreamQuery");
}

static void submit(void)
{
    must(cuMemsetD8Async(block, 1, 1, stream), "cuMemsetD8Async");
}

static void measure(const char *name, void (*call)(void))
{
    double begin = now_ns();

    for (int i = 0; i < ROUNDS; i++) {
        call();
    }
    printf("%s %.3f\n", name, (now_ns() - begin) / ROUNDS);
}

int main(void)
{
    CUcontext context = NULL;

    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuMemAlloc(&block, 4096), "cuMemAlloc");
    measure("cuCtxGetCurrent", ask_context);
    measure("cuStreamQuery", ask_stream);
    measure("cuMemsetD8Async", submit);
    return 0;
}
