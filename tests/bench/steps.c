/* Replays a trace step by step and prints what each step cost the driver.
 *
 *     steps [--sync] STEPS TRACE.csv
 *
 * Every buffer is allocated, written, written again and freed on one stream. One line of JSON a
 * step: how often each function of `counted` was called, by whomever, and "NAME chunks" and "NAME
 * bytes" that it covered, where the driver is the simulated one. Exit 1 when an allocation fails.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"
#include "trace.h"

struct replay {
    struct trace trace;
    CUdeviceptr *addresses; /* of the live buffers, by index */
    CUstream stream;
    bool sync; /* cuMemAlloc and cuMemFree */
    counted_calls *count;
    counted_covered *covered;
    unsigned long long before[COUNTED];
    unsigned long long chunks_before[COUNTED_CHUNKS], bytes_before[COUNTED_CHUNKS];
};

static void must(CUresult result, const char *call)
{
    const char *name = "?";

    if (result != CUDA_SUCCESS) {
        (void)cuGetErrorName(result, &name);
        fprintf(stderr, "steps: %s: %s\n", call, name);
        exit(1);
    }
}

static void allocate(struct replay *replay, uint32_t index)
{
    uint64_t bytes = replay->trace.buffers[index].bytes;
    CUdeviceptr *address = &replay->addresses[index];

    if (replay->sync) {
        must(cuMemAlloc(address, bytes), "cuMemAlloc");
    } else {
        must(cuMemAllocAsync(address, bytes, replay->stream), "cuMemAllocAsync");
    }
    must(cuMemsetD8Async(*address, 1, 1, replay->stream), "cuMemsetD8Async");
}

static void release(struct replay *replay, uint32_t index)
{
    CUdeviceptr address = replay->addresses[index];

    must(cuMemsetD8Async(address, 2, 1, replay->stream), "cuMemsetD8Async");
    if (replay->sync) {
        must(cuMemFree(address), "cuMemFree");
    } else {
        must(cuMemFreeAsync(address, replay->stream), "cuMemFreeAsync");
    }
}

/* The counts since the last call. */
static void print_counts(struct replay *replay, unsigned step)
{
    printf("{\"step\": %u", step);
    for (int i = 0; i < COUNTED; i++) {
        unsigned long long now = replay->count(counted[i]);

        printf(", \"%s\": %llu", counted[i], now - replay->before[i]);
        replay->before[i] = now;
    }
    for (int i = 0; i < COUNTED_CHUNKS; i++) {
        unsigned long long bytes, chunks = replay->covered(counted_chunks[i], &bytes);

        printf(", \"%s chunks\": %llu, \"%s bytes\": %llu", counted_chunks[i],
               chunks - replay->chunks_before[i], counted_chunks[i],
               bytes - replay->bytes_before[i]);
        replay->chunks_before[i] = chunks;
        replay->bytes_before[i] = bytes;
    }
    printf("}\n");
}

static void run(struct replay *replay, unsigned steps)
{
    for (unsigned step = 1; step <= steps; step++) {
        for (size_t i = 0; i < 2 * replay->trace.count; i++) {
            const struct trace_event *event = &replay->trace.events[i];

            (event->alloc ? allocate : release)(replay, event->buffer);
        }
        if (replay->count != NULL) {
            print_counts(replay, step);
        }
    }
    must(cuStreamSynchronize(replay->stream), "cuStreamSynchronize");
}

int main(int argc, char **argv)
{
    struct replay replay = {0};
    CUcontext context = NULL;
    unsigned steps;

    replay.sync = argc > 1 && strcmp(argv[1], "--sync") == 0;
    argv += replay.sync;
    argc -= replay.sync;
    if (argc != 3 || (steps = (unsigned)strtoul(argv[1], NULL, 10)) == 0) {
        fputs("usage: steps [--sync] STEPS TRACE.csv\n", stderr);
        return 2;
    }
    if (!trace_read(argv[2], &replay.trace)) {
        return 2;
    }
    replay.count = counted_find();
    replay.covered = counted_find_covered();
    replay.addresses = calloc(replay.trace.count, sizeof(*replay.addresses));
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuStreamCreate(&replay.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    run(&replay, steps);
    free(replay.addresses);
    trace_free(&replay.trace);
    return 0;
}
