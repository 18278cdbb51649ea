/* A thread without a context allocates memory that another stream still uses. Queries of the stream
 * fail on such a thread; the failure must not count as "complete". */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

static const size_t first_bytes = (size_t)600 << 20, second_bytes = (size_t)700 << 20;
static CUstream streams[2];
static _Atomic unsigned int *flag; /* the first stream spins until it is set */
static unsigned int flag_at_return;

static void *allocate(void *unused)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, second_bytes, streams[1]));
    flag_at_return = atomic_load(flag);
    return unused;
}

int main(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction spin;
    CUdeviceptr block, flag_address;
    pthread_t thread;
    void *pinned, *arguments[] = {&flag_address};

    MUST(cuInit(0));
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    MUST(cuModuleLoadData(&module, "any image"));
    MUST(cuModuleGetFunction(&spin, module, "spw_spin"));
    MUST(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc(&pinned, sizeof(*flag), 0));
    flag = pinned;
    atomic_store(flag, 0);
    flag_address = (CUdeviceptr)pinned;
    MUST(cuMemAllocAsync(&block, first_bytes, streams[0]));
    MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[0], arguments, NULL));
    MUST(cuMemsetD8Async(block, 7, first_bytes, streams[0]));
    MUST(cuMemFreeAsync(block, streams[0]));
    MUST(pthread_create(&thread, NULL, allocate, NULL));
    (void)usleep(200 * 1000);
    atomic_store(flag, 1);
    (void)cuStreamQuery(streams[0]);
    MUST(pthread_join(thread, NULL));
    MUST(cuCtxSynchronize());
    puts(flag_at_return == 1 ? "waited" : "did not wait");
    return 0;
}
