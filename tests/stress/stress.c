/* Threads that allocate, write, pass on, check and free at the same time.
 *
 * Every block is filled with a value of its own on its stream. The thread that takes it from a
 * shared table checks and frees it on its own stream, behind an event. Prints its seed; exits 1
 * when content was wrong. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 6, STREAMS = 3, SHELF = 64, BYTES_MAX = 6 << 20 };

struct block {
    CUdeviceptr address; /* 0: an empty place */
    size_t bytes;
    unsigned char value;
    bool ordered; /* from cuMemAllocAsync: cuMemFree does not wait for the work on it */
    CUevent written;
};

static struct block shelf[SHELF];
static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext context;
static atomic_int mismatches;
static atomic_int refused;
static unsigned seed;
static int rounds;

static void must(CUresult result, const char *call)
{
    const char *name = "?";

    if (result != CUDA_SUCCESS) {
        (void)cuGetErrorName(result, &name);
        fprintf(stderr, "%s: %s (seed %u)\n", call, name, seed);
        exit(1);
    }
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Sizes from a few bytes to some MiB, small ones more often. */
static size_t random_size(uint32_t *state)
{
    return 1 + next_random(state) % ((size_t)BYTES_MAX >> next_random(state) % 16);
}

/* Allocates a block and writes it on the stream; false when there is no memory, which is allowed.
 */
static bool make(struct block *block, uint32_t *state, CUstream stream)
{
    CUresult result;

    block->bytes = random_size(state);
    block->value = (unsigned char)(1 + next_random(state) % 255);
    block->ordered = next_random(state) % 3 != 0;
    if (block->ordered) {
        result = cuMemAllocAsync(&block->address, block->bytes, stream);
    } else {
        result = cuMemAlloc(&block->address, block->bytes);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        atomic_fetch_add(&refused, 1);
        return false;
    }
    must(result, "allocate");
    must(cuMemsetD8Async(block->address, block->value, block->bytes, stream), "memset");
    must(cuEventCreate(&block->written, CU_EVENT_DISABLE_TIMING), "event");
    must(cuEventRecord(block->written, stream), "record");
    return true;
}

static void check(const struct block *block, CUstream stream)
{
    unsigned char ends[2] = {0, 0};

    must(cuMemcpyDtoHAsync(&ends[0], block->address, 1, stream), "copy");
    must(cuMemcpyDtoHAsync(&ends[1], block->address + block->bytes - 1, 1, stream), "copy");
    must(cuStreamSynchronize(stream), "synchronise");
    if (ends[0] != block->value || ends[1] != block->value) {
        fprintf(stderr, "block of %zu bytes: found %u and %u, expected %u (seed %u)\n",
                block->bytes, ends[0], ends[1], block->value, seed);
        atomic_fetch_add(&mismatches, 1);
    }
}

/* Checks and frees a block of any thread, on this thread's stream. It seldom waits for the device,
 * so that most frees find work pending. */
static void end(struct block *block, uint32_t *state, CUstream stream)
{
    must(cuStreamWaitEvent(stream, block->written, 0), "wait");
    if (next_random(state) % 6 == 0) {
        check(block, stream);
    }
    if (next_random(state) % 40 == 0) {
        if (block->ordered) {
            must(cuStreamSynchronize(stream), "synchronise");
        }
        must(cuMemFree(block->address), "cuMemFree");
    } else {
        must(cuMemFreeAsync(block->address, stream), "cuMemFreeAsync");
    }
    must(cuEventDestroy(block->written), "event");
}

static void swap_with_shelf(struct block *block, size_t place)
{
    struct block taken;

    pthread_mutex_lock(&shelf_lock);
    taken = shelf[place];
    shelf[place] = *block;
    *block = taken;
    pthread_mutex_unlock(&shelf_lock);
}

static void *work(void *argument)
{
    uint32_t state = seed * 2654435761u + (uint32_t)(uintptr_t)argument + 1;
    CUstream streams[STREAMS];

    must(cuCtxSetCurrent(context), "context");
    for (int i = 0; i < STREAMS; i++) {
        must(cuStreamCreate(&streams[i], i == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING),
             "stream");
    }
    for (int i = 0; i < rounds; i++) {
        struct block block = {0};

        /* Half of them end at once, with the writes still pending. */
        if (make(&block, &state, streams[next_random(&state) % STREAMS]) &&
            next_random(&state) % 2 == 0) {
            swap_with_shelf(&block, next_random(&state) % SHELF);
        }
        if (block.address != 0) {
            end(&block, &state, streams[next_random(&state) % STREAMS]);
        }
        if (next_random(&state) % 200 == 0) {
            size_t free_bytes;
            size_t total_bytes;

            must(cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo");
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        must(cuStreamDestroy(streams[i]), "stream");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    CUmemoryPool pool = NULL;
    uint32_t state = 1;

    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    rounds = argc > 2 ? atoi(argv[2]) : 1000;
    printf("seed %u, %d threads, %d rounds\n", seed, THREADS, rounds);
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "context");
    must(cuCtxSetCurrent(context), "context");
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < SHELF; i++) {
        if (shelf[i].address != 0) {
            end(&shelf[i], &state, NULL);
        }
    }
    must(cuCtxSynchronize(), "synchronise");
    must(cuDeviceGetDefaultMemPool(&pool, 0), "pool");
    must(cuMemPoolTrimTo(pool, 0), "trim");
    printf("%d mismatches, %d allocations refused\n", mismatches, refused);
    return mismatches != 0;
}
