/* A thread that is to be cancelled uses CUDA, for the first time in the process, and fills the
 * device. Prints how many of its calls returned before it was cancelled, and whether another thread
 * can go on. */
#include <cuda.h>
#include <pthread.h>

#include "check.h"

static int returned;

static void *use(void *unused)
{
    CUdeviceptr block;
    CUcontext context;

    (void)pthread_cancel(pthread_self());
    MUST(cuInit(0));
    returned++;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&block, 1 << 20));
    returned++;
    while (cuMemAlloc(&block, 16 << 20) == CUDA_SUCCESS) {
    }
    returned++;
    pthread_testcancel();
    return unused;
}

int main(void)
{
    CUdeviceptr block;
    CUcontext context;
    pthread_t thread;
    void *end;

    if (pthread_create(&thread, NULL, use, NULL) != 0 || pthread_join(thread, &end) != 0) {
        return 1;
    }
    printf("%d calls, %s\n", returned, end == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    fflush(stdout);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&block, 4096));
    MUST(cuMemFree(block));
    printf("done\n");
    return 0;
}
