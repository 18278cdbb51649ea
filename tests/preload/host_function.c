/* A host function on a stream waits for a mutex. The mutex's owner frees memory with a stream-
 * ordered call while another thread allocates and frees without one. No thread may wait for the
 * device while it holds a lock that the owner needs. Then tests that freed memory is not reused too
 * early. */
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "check.h"

enum { BLOCKS = 16, PAUSE_NS = 1000000, FREE_PAUSES = 100 };

static const size_t bytes = 8 << 20;

static struct {
    CUcontext context;
    CUstream stream;
    pthread_mutex_t mutex;
    sem_t waits;     /* the host function is about to wait for the mutex */
    sem_t allocates; /* the other thread is about to allocate */
    CUdeviceptr blocks[BLOCKS];
} test = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void CUDA_CB wait_for_mutex(void *unused)
{
    (void)unused;
    sem_post(&test.waits);
    pthread_mutex_lock(&test.mutex);
    pthread_mutex_unlock(&test.mutex);
}

/* Allocates and frees while the host function waits. A bare driver may wait in cuMemFree. */
static void *allocate(void *unused)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(test.context));
    sem_post(&test.allocates);
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAlloc(&block, bytes));
        MUST(cuMemFree(block));
    }
    return unused;
}

static void *free_block(void *block)
{
    MUST(cuCtxSetCurrent(test.context));
    MUST(cuMemFree(*(CUdeviceptr *)block));
    return NULL;
}

static void pause_often(int count)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    for (int i = 0; i < count; i++) {
        nanosleep(&pause, NULL);
    }
}

/* Frees a block before the copy from it begins: memory allocated and written meanwhile must be
 * other memory. */
static void check_content(void)
{
    unsigned int found = 0, other = 0;
    CUdeviceptr source, target, next;
    CUstream stream;
    pthread_t freer;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&source, bytes));
    MUST(cuMemAlloc(&target, bytes));
    MUST(cuMemsetD32(source, 1, bytes / sizeof(found)));
    MUST(cuMemsetD32(target, 0, bytes / sizeof(found)));
    MUST(cuCtxSynchronize());
    pthread_mutex_lock(&test.mutex);
    MUST(cuLaunchHostFunc(test.stream, wait_for_mutex, NULL));
    MUST(cuMemcpyDtoDAsync(target, source, bytes, test.stream));
    sem_wait(&test.waits);
    MUST(pthread_create(&freer, NULL, free_block, &source));
    pause_often(FREE_PAUSES);
    MUST(cuMemAlloc(&next, bytes));
    MUST(cuMemsetD32Async(next, 2, bytes / sizeof(found), stream));
    MUST(cuStreamSynchronize(stream));
    pthread_mutex_unlock(&test.mutex);
    MUST(pthread_join(freer, NULL));
    MUST(cuStreamSynchronize(test.stream));
    MUST(cuMemcpyDtoH(&found, target, sizeof(found)));
    MUST(cuMemcpyDtoH(&other, next, sizeof(other)));
    HOLD(found == 1 && other == 2);
    MUST(cuMemFree(next));
    MUST(cuMemFree(target));
    MUST(cuStreamDestroy(stream));
}

int main(void)
{
    pthread_t allocator;
    CUstream own;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&test.context, 0));
    MUST(cuCtxSetCurrent(test.context));
    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    MUST(sem_init(&test.waits, 0, 0));
    MUST(sem_init(&test.allocates, 0, 0));
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAllocAsync(&test.blocks[i], bytes, own));
    }
    pthread_mutex_lock(&test.mutex);
    MUST(cuLaunchHostFunc(test.stream, wait_for_mutex, NULL));
    sem_wait(&test.waits);
    MUST(pthread_create(&allocator, NULL, allocate, NULL));
    sem_wait(&test.allocates);
    for (int i = 0; i < BLOCKS; i++) {
        pause_often(1); /* the other thread is inside its call by now */
        MUST(cuMemFreeAsync(test.blocks[i], own));
    }
    pthread_mutex_unlock(&test.mutex);
    MUST(pthread_join(allocator, NULL));
    MUST(cuStreamSynchronize(test.stream));
    check_content();
    puts("done");
    return 0;
}
