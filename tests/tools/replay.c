/* replay: runs a trace of allocations as an ordinary CUDA program.
 *
 * It allocates and frees what the trace says, with the CUDA runtime and nothing else, and makes
 * sure of its memory: every buffer is stamped (staging.h) on its own stream after it was allocated
 * and checked before it is freed. With several streams half of the buffers are freed on another
 * stream than their own, behind an event, as a correct program does. At the end it gives unused
 * memory back, as PyTorch's empty_cache does. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "staging.h"
#include "trace.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const double gib = 1024.0 * 1024.0 * 1024.0;

struct settings {
    bool ordered; /* use cudaMallocAsync and cudaFreeAsync, not cudaMalloc and cudaFree */
    bool quiet;
    bool touching; /* also check and rewrite buffers in the middle of their life */
    uint32_t steps;
    int streams;
    uint64_t seed;
    const char *path;
};

struct replay {
    struct settings settings;
    struct trace trace;
    void **addresses; /* of the live buffers, by index */
    bool *touched;    /* the same: written a second time in this step */
    /* The buffers to touch after each event, as lists: indices plus 1, ended by 0. */
    uint32_t *first_touch, *next_touch;
    cudaStream_t streams[STAGING_STREAMS_MAX];
    cudaEvent_t moved[STAGING_STREAMS_MAX]; /* one for each stream: buffers leave it behind this */
    struct staging *staging;
    uint32_t step;
    uint64_t live_bytes;
};

static const char usage[] =
    "usage: replay [--async|--sync] [--steps N] [--streams N] [--seed N] [--touch] [--quiet]\n"
    "              FILE.csv\n"
    "Replays a trace of allocations on the GPU, checking the content of every buffer.\n"
    "  --async      cudaMallocAsync and cudaFreeAsync on the buffer's stream (default)\n"
    "  --sync       cudaMalloc and cudaFree\n"
    "  --steps N    how often to replay the file, one after the other (default 3)\n"
    "  --streams N  how many streams to spread the buffers over, 1 to 64 (default 1)\n"
    "  --seed N     which buffer goes to which stream (default 0)\n"
    "  --touch      check buffers and write them anew in the middle of their life as well\n"
    "  --quiet      no summary\n"
    "Exit: 0 all well, 1 wrong content or a CUDA error, 2 bad usage or no trace.\n";

static bool failed(cudaError_t err, const char *call)
{
    if (err == cudaSuccess) {
        return false;
    }
    fprintf(stderr, "replay: %s: %s (%s)\n", call, cudaGetErrorName(err), cudaGetErrorString(err));
    return true;
}

static bool failed_for(const struct replay *replay, cudaError_t err, const char *call,
                       uint32_t index)
{
    if (err == cudaSuccess) {
        return false;
    }
    fprintf(stderr,
            "replay: %s: %s (%s): buffer %" PRIu64 " of %" PRIu64
            " bytes in step %u, with %.3f GiB live\n",
            call, cudaGetErrorName(err), cudaGetErrorString(err), replay->trace.buffers[index].id,
            replay->trace.buffers[index].bytes, replay->step, replay->live_bytes / gib);
    return true;
}

/* Mixes (seed, index, salt) to a number, by the finalizer of splitmix64. */
static uint64_t mix(uint64_t seed, uint64_t index, uint64_t salt)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u + salt;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The streams on which a buffer is allocated and freed: the same in every step, as in training. */
static int home_stream(const struct settings *settings, uint32_t index)
{
    return (int)(mix(settings->seed, index, 1) % (unsigned)settings->streams);
}

static int last_stream(const struct settings *settings, uint32_t index)
{
    if (mix(settings->seed, index, 2) % 2 == 0) {
        return home_stream(settings, index);
    }
    return (int)(mix(settings->seed, index, 3) % (unsigned)settings->streams);
}

static struct staging_buffer describe(const struct replay *replay, uint32_t index)
{
    const struct trace_buffer *buffer = &replay->trace.buffers[index];

    return (struct staging_buffer){replay->addresses[index], buffer->bytes, buffer->id, index,
                                   2 * replay->step + replay->touched[index]};
}

static bool allocate(struct replay *replay, uint32_t index)
{
    int stream = home_stream(&replay->settings, index);
    uint64_t bytes = replay->trace.buffers[index].bytes;
    void **address = &replay->addresses[index];

    if (replay->settings.ordered) {
        if (failed_for(replay, cudaMallocAsync(address, bytes, replay->streams[stream]),
                       "cudaMallocAsync", index)) {
            return false;
        }
    } else if (failed_for(replay, cudaMalloc(address, bytes), "cudaMalloc", index)) {
        return false;
    }
    replay->live_bytes += trace_rounded(bytes);
    replay->touched[index] = false;

    struct staging_buffer buffer = describe(replay, index);

    return !failed_for(replay, staging_write(replay->staging, &buffer, stream), "write", index);
}

/* Makes the stream `to` wait for the work that `from` has so far. */
static bool move(struct replay *replay, int from, int to)
{
    if (from == to) {
        return true;
    }
    return !failed(cudaEventRecord(replay->moved[from], replay->streams[from]),
                   "cudaEventRecord") &&
           !failed(cudaStreamWaitEvent(replay->streams[to], replay->moved[from], 0),
                   "cudaStreamWaitEvent");
}

static bool release(struct replay *replay, uint32_t index)
{
    int stream = last_stream(&replay->settings, index);
    struct staging_buffer buffer = describe(replay, index);

    if (!move(replay, home_stream(&replay->settings, index), stream) ||
        failed_for(replay, staging_check(replay->staging, &buffer, stream), "check", index)) {
        return false;
    }
    replay->live_bytes -= trace_rounded(buffer.bytes);
    if (replay->settings.ordered) {
        return !failed_for(replay, cudaFreeAsync(buffer.address, replay->streams[stream]),
                           "cudaFreeAsync", index);
    }
    return !failed_for(replay, cudaFree(buffer.address), "cudaFree", index);
}

/* Checks a buffer in the middle of its life and writes new content. */
static bool touch(struct replay *replay, uint32_t index)
{
    int stream = home_stream(&replay->settings, index);
    struct staging_buffer buffer = describe(replay, index);

    if (failed_for(replay, staging_check(replay->staging, &buffer, stream), "check", index)) {
        return false;
    }
    replay->touched[index] = true;
    buffer = describe(replay, index);
    return !failed_for(replay, staging_write(replay->staging, &buffer, stream), "write", index);
}

static bool touch_all(struct replay *replay, size_t event)
{
    for (uint32_t i = replay->first_touch[event]; i != 0; i = replay->next_touch[i - 1]) {
        if (!touch(replay, i - 1)) {
            return false;
        }
    }
    return true;
}

/* Half-way, counted in events, between allocation and free. */
static bool plan_touches(struct replay *replay)
{
    size_t *begin = calloc(replay->trace.count, sizeof(*begin));

    for (size_t i = 0; begin != NULL && i < 2 * replay->trace.count; i++) {
        const struct trace_event *event = &replay->trace.events[i];
        size_t middle = (begin[event->buffer] + i) / 2;

        if (event->alloc) {
            begin[event->buffer] = i;
        } else {
            replay->next_touch[event->buffer] = replay->first_touch[middle];
            replay->first_touch[middle] = event->buffer + 1;
        }
    }
    free(begin);
    return begin != NULL;
}

static bool run_steps(struct replay *replay)
{
    for (replay->step = 1; replay->step <= replay->settings.steps; replay->step++) {
        for (size_t i = 0; i < 2 * replay->trace.count; i++) {
            const struct trace_event *event = &replay->trace.events[i];

            if (!(event->alloc ? allocate : release)(replay, event->buffer) ||
                !touch_all(replay, i)) {
                return false;
            }
        }
    }
    return true;
}

static bool start(struct replay *replay)
{
    replay->addresses = calloc(replay->trace.count, sizeof(*replay->addresses));
    replay->touched = calloc(replay->trace.count, sizeof(*replay->touched));
    replay->first_touch = calloc(2 * replay->trace.count, sizeof(*replay->first_touch));
    replay->next_touch = calloc(replay->trace.count, sizeof(*replay->next_touch));
    if (replay->addresses == NULL || replay->touched == NULL || replay->first_touch == NULL ||
        replay->next_touch == NULL || (replay->settings.touching && !plan_touches(replay))) {
        fprintf(stderr, "replay: out of memory\n");
        return false;
    }
    for (int i = 0; i < replay->settings.streams; i++) {
        if (failed(cudaStreamCreateWithFlags(&replay->streams[i], cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags") ||
            failed(cudaEventCreateWithFlags(&replay->moved[i], cudaEventDisableTiming),
                   "cudaEventCreateWithFlags")) {
            return false;
        }
    }
    return !failed(staging_create(replay->streams, replay->settings.streams, &replay->staging),
                   "staging memory");
}

static void stop(struct replay *replay)
{
    staging_destroy(replay->staging);
    for (int i = 0; i < replay->settings.streams; i++) {
        if (replay->moved[i] != NULL) {
            (void)cudaEventDestroy(replay->moved[i]);
        }
        if (replay->streams[i] != NULL) {
            (void)cudaStreamDestroy(replay->streams[i]);
        }
    }
    free(replay->addresses);
    free(replay->touched);
    free(replay->first_touch);
    free(replay->next_touch);
}

/* Returns the peak of the default memory pool (0 if it was not used) and makes the pool free its
 * unused memory. */
static bool empty_pool(uint64_t *ret_reserved_bytes)
{
    cudaMemPool_t pool = NULL;
    int device = 0;

    return !failed(cudaGetDevice(&device), "cudaGetDevice") &&
           !failed(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool") &&
           !failed(
               cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, ret_reserved_bytes),
               "cudaMemPoolGetAttribute") &&
           !failed(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
}

static void print_summary(const struct replay *replay, const struct staging_figures *figures,
                          uint64_t reserved_bytes, double seconds)
{
    const struct settings *settings = &replay->settings;

    printf("trace:      %s, %zu buffers\n", settings->path, replay->trace.count);
    printf("run:        %s, steps %u, streams %d, seed %" PRIu64 "\n",
           settings->ordered ? "async" : "sync", settings->steps, settings->streams,
           settings->seed);
    printf("peak live:  %" PRIu64 " bytes (%.3f GiB)\n", replay->trace.peak_bytes,
           replay->trace.peak_bytes / gib);
    printf("pool peak:  %" PRIu64 " bytes (%.3f GiB)\n", reserved_bytes, reserved_bytes / gib);
    printf("checked:    %" PRIu64 " places, %" PRIu64 " mismatches\n", figures->places,
           figures->mismatches);
    printf("time:       %.3f s, %.3f s a step, %" PRIu64 " host waits for staging\n", seconds,
           settings->steps > 0 ? seconds / settings->steps : 0.0, figures->host_waits);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int run(struct replay *replay)
{
    struct staging_figures figures = {0};
    uint64_t reserved_bytes = 0;
    bool complete = false;

    if (start(replay)) {
        double begin = now();

        complete = run_steps(replay);
        /* Done after a failure too: the data read until then is worth comparing. */
        complete = !failed(staging_finish(replay->staging, &figures), "finish") && complete;

        double seconds = now() - begin;

        complete = complete && empty_pool(&reserved_bytes);
        if (complete && !replay->settings.quiet) {
            print_summary(replay, &figures, reserved_bytes, seconds);
        }
    }
    stop(replay);
    return complete && figures.mismatches == 0 ? EXIT_OK : EXIT_FAILED;
}

static bool parse_number(const char *name, const char *text, uint64_t least, uint64_t most,
                         uint64_t *ret_number)
{
    char *end = NULL;

    errno = 0;
    uint64_t number = strtoull(text, &end, 10);

    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || number < least ||
        number > most) {
        fprintf(stderr, "replay: --%s %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
                name, text, least, most);
        return false;
    }
    *ret_number = number;
    return true;
}

/* -1: go on; otherwise the exit status. */
static int parse_arguments(int argc, char **argv, struct settings *ret_settings)
{
    static const struct option options[] = {
        {"async", no_argument, NULL, 'a'},
        {"sync", no_argument, NULL, 's'},
        {"steps", required_argument, NULL, 'n'},
        {"streams", required_argument, NULL, 'm'},
        {"seed", required_argument, NULL, 'r'},
        {"quiet", no_argument, NULL, 'q'},
        {"touch", no_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct settings settings = {.ordered = true};
    uint64_t steps = 3;
    uint64_t streams = 1;
    bool good = true;
    int letter;

    while (good && (letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (letter) {
        case 'a':
        case 's':
            settings.ordered = letter == 'a';
            break;
        case 'n':
            good = parse_number("steps", optarg, 1, 1000000, &steps);
            break;
        case 'm':
            good = parse_number("streams", optarg, 1, STAGING_STREAMS_MAX, &streams);
            break;
        case 'r':
            good = parse_number("seed", optarg, 0, UINT64_MAX, &settings.seed);
            break;
        case 't':
            settings.touching = true;
            break;
        case 'q':
            settings.quiet = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return EXIT_OK;
        default:
            good = false;
        }
    }
    if (!good || optind != argc - 1) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    settings.steps = (uint32_t)steps;
    settings.streams = (int)streams;
    settings.path = argv[optind];
    *ret_settings = settings;
    return -1;
}

int main(int argc, char **argv)
{
    struct replay replay = {0};
    int status = parse_arguments(argc, argv, &replay.settings);

    if (status >= 0) {
        return status;
    }
    if (!trace_read(replay.settings.path, &replay.trace)) {
        return EXIT_USAGE;
    }
    status = run(&replay);
    trace_free(&replay.trace);
    return status;
}
