/* Nanoseconds of an allocate/free pair that finds its memory ready, beside many live blocks.
 *
 *     hot DOOR LIVE THREADS TRACE.csv...
 *
 * DOOR: async and sync (the driver's calls), runtime (cudaMallocAsync), malloc (the one in the
 * process; sizes are divided by 1024, as no malloc keeps blocks of many MiB). Sizes are drawn from
 * the traces. `pair` frees each block at once; `random` frees a random live block and allocates
 * another one, so that the records it needs are cold. Each thread has a stream and its share of the
 * live blocks. Prints "name number" lines: driver calls of a pair, median and 99th percentile of
 * the means of BATCH pairs in wall time, and the time of a pair with all threads running. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "counted.h"
#include "trace.h"

enum { BATCH = 32, SAMPLES = 8000, THREADS_MOST = 64, SIZES = 1024, TRACES_MOST = 8 };

struct worker {
    pthread_t thread;
    CUstream stream;
    uint64_t random;
    uint32_t sizes[SIZES]; /* in units; drawn in advance, to keep it out of the measurement */
    void **blocks;
    size_t live;
    double *samples;
    double seconds;
};

struct door {
    const char *name;
    void *(*allocate)(struct worker *worker, size_t bytes);
    void (*release)(struct worker *worker, void *block);
};

static struct trace traces[TRACES_MOST];
static size_t trace_count;
static const struct door *door;
static CUcontext context;
static pthread_barrier_t barrier;
static bool random_order;
static counted_calls *count;
static unsigned long long calls; /* of the measured pairs */

static void must(int result, const char *call)
{
    if (result != 0) {
        fprintf(stderr, "hot: %s: %d\n", call, result);
        exit(1);
    }
}

/* ---- doors ---- */

static void *allocate_async(struct worker *worker, size_t bytes)
{
    CUdeviceptr block = 0;

    must(cuMemAllocAsync(&block, bytes, worker->stream), "cuMemAllocAsync");
    return (void *)(uintptr_t)block;
}

static void release_async(struct worker *worker, void *block)
{
    must(cuMemFreeAsync((CUdeviceptr)(uintptr_t)block, worker->stream), "cuMemFreeAsync");
}

static void *allocate_sync(struct worker *worker, size_t bytes)
{
    CUdeviceptr block = 0;

    (void)worker;
    must(cuMemAlloc(&block, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)block;
}

static void release_sync(struct worker *worker, void *block)
{
    (void)worker;
    must(cuMemFree((CUdeviceptr)(uintptr_t)block), "cuMemFree");
}

static void *allocate_runtime(struct worker *worker, size_t bytes)
{
    void *block = NULL;

    must(cudaMallocAsync(&block, bytes, (cudaStream_t)worker->stream), "cudaMallocAsync");
    return block;
}

static void release_runtime(struct worker *worker, void *block)
{
    must(cudaFreeAsync(block, (cudaStream_t)worker->stream), "cudaFreeAsync");
}

static void *allocate_malloc(struct worker *worker, size_t bytes)
{
    char *block = malloc((bytes + 1023) / 1024);

    (void)worker;
    must(block == NULL, "malloc");
    *(volatile char *)block = 1; /* keeps the compiler from removing the pair */
    return block;
}

static void release_malloc(struct worker *worker, void *block)
{
    (void)worker;
    free(block);
}

static const struct door doors[] = {
    {"async", allocate_async, release_async},
    {"sync", allocate_sync, release_sync},
    {"runtime", allocate_runtime, release_runtime},
    {"malloc", allocate_malloc, release_malloc},
};

/* ---- work ---- */

static uint64_t draw(struct worker *worker)
{
    worker->random = worker->random * 6364136223846793005ull + 1442695040888963407ull;
    return worker->random >> 33;
}

static void *allocate(struct worker *worker)
{
    return door->allocate(worker, (size_t)worker->sizes[draw(worker) % SIZES] * 512);
}

static void pairs(struct worker *worker)
{
    for (int i = 0; i < BATCH; i++) {
        door->release(worker, allocate(worker));
    }
}

static void replacements(struct worker *worker)
{
    for (int i = 0; i < BATCH; i++) {
        void **block = &worker->blocks[draw(worker) % worker->live];

        door->release(worker, *block);
        *block = allocate(worker);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One thread records the time while the others wait. */
static void count_all(int sign)
{
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD && count != NULL) {
        for (int i = 0; i < COUNTED; i++) {
            calls += (unsigned long long)sign * count(counted[i]);
        }
    }
    pthread_barrier_wait(&barrier);
}

static void measure(struct worker *worker)
{
    double begin, last;

    for (int i = 0; i < SAMPLES; i++) {
        (random_order ? replacements : pairs)(worker);
    }
    count_all(-1);
    begin = last = now();
    for (int i = 0; i < SAMPLES; i++) {
        double time;

        (random_order ? replacements : pairs)(worker);
        time = now();
        worker->samples[i] = (time - last) * 1e9 / BATCH;
        last = time;
    }
    worker->seconds = last - begin;
    count_all(1);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    if (context != NULL) {
        must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        must(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    for (size_t i = 0; i < SIZES; i++) {
        const struct trace *trace = &traces[i % trace_count];
        uint64_t bytes = trace->buffers[draw(worker) % trace->count].bytes;

        worker->sizes[i] = (uint32_t)(trace_rounded(bytes) / 512);
    }
    for (size_t i = 0; i < worker->live; i++) {
        worker->blocks[i] = allocate(worker);
    }
    measure(worker);
    return NULL;
}

/* ---- the whole ---- */

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

static void report(struct worker *workers, int threads)
{
    size_t samples = (size_t)threads * SAMPLES;
    const char *name = random_order ? "random" : "pair";
    double *all = malloc(samples * sizeof(double)), seconds = 0;

    for (int i = 0; i < threads; i++) {
        memcpy(all + (size_t)i * SAMPLES, workers[i].samples, SAMPLES * sizeof(double));
        seconds = workers[i].seconds > seconds ? workers[i].seconds : seconds;
    }
    qsort(all, samples, sizeof(double), compare);
    printf("%s calls %.2f\n", name, (double)calls / (double)(samples * BATCH));
    printf("%s median %.2f\n", name, all[samples / 2]);
    printf("%s p99 %.2f\n", name, all[samples / 100 * 99]);
    printf("%s together %.2f\n", name, seconds * 1e9 / (double)(samples * BATCH));
    free(all);
}

static void run(int threads, size_t live, bool is_random)
{
    static struct worker workers[THREADS_MOST];

    random_order = is_random;
    calls = 0;
    memset(workers, 0, sizeof(workers));
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){.random = (uint64_t)i + 1, .live = live / (size_t)threads};
        workers[i].live += workers[i].live == 0;
        workers[i].blocks = calloc(workers[i].live, sizeof(void *));
        workers[i].samples = calloc(SAMPLES, sizeof(double));
        must(pthread_create(&workers[i].thread, NULL, work, &workers[i]), "pthread_create");
    }
    for (int i = 0; i < threads; i++) {
        must(pthread_join(workers[i].thread, NULL), "pthread_join");
    }
    report(workers, threads);
    for (int i = 0; i < threads; i++) {
        for (size_t k = 0; k < workers[i].live; k++) {
            door->release(&workers[i], workers[i].blocks[k]);
        }
        free(workers[i].blocks);
        free(workers[i].samples);
    }
}

static bool choose_door(const char *name)
{
    for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
        if (strcmp(doors[i].name, name) == 0) {
            door = &doors[i];
        }
    }
    return door != NULL;
}

static bool read_traces(char **paths)
{
    for (; *paths != NULL && trace_count < TRACES_MOST; paths++, trace_count++) {
        if (!trace_read(*paths, &traces[trace_count])) {
            return false;
        }
    }
    return *paths == NULL;
}

int main(int argc, char **argv)
{
    size_t live = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
    int threads = argc > 4 ? atoi(argv[3]) : 0;

    if (threads < 1 || threads > THREADS_MOST || !choose_door(argv[1]) || !read_traces(argv + 4)) {
        fputs("usage: hot async|sync|runtime|malloc LIVE THREADS TRACE.csv...\n", stderr);
        return 2;
    }
    if (door->allocate != allocate_malloc) {
        count = counted_find();
        must(cuInit(0), "cuInit");
        must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
        must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    }
    run(threads, live, false);
    run(threads, live, true);
    while (trace_count > 0) {
        trace_free(&traces[--trace_count]);
    }
    return 0;
}
