/* Threads that allocate tensors, write them, pass them on, check them on another stream and free
 * them at once, while private pools, captures and histories are opened and closed.
 *
 *     storm SEED ROUNDS
 *
 * Every tensor is filled with a value of its own. Exits 1 when content was wrong. */
#include "allocator.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { THREADS = 5, STREAMS = 3, SHELF = 48, BYTES_MOST = 16 << 20 };

struct item {
    struct spw_torch_data_ptr tensor; /* data NULL: an empty place */
    size_t words;
    uint32_t value;
    cudaStream_t stream;
    cudaEvent_t written;
    bool raw;
};

struct thread {
    pthread_t id;
    uint32_t random;
    cudaStream_t streams[STREAMS], captured;
};

static struct item shelf[SHELF];
static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static CUfunction check;
static uint64_t *bad; /* what check kernels found */
static atomic_int refused;
static int rounds;

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static bool one_in(struct thread *thread, uint32_t number)
{
    return next_random(&thread->random) % number == 0;
}

static bool make(struct thread *thread, struct item *item)
{
    size_t most = (size_t)BYTES_MOST >> next_random(&thread->random) % 14;
    size_t bytes = 4 + next_random(&thread->random) % most;

    item->stream = thread->streams[next_random(&thread->random) % STREAMS];
    item->raw = one_in(thread, 4);
    item->words = bytes / 4;
    item->value = next_random(&thread->random);
    fake_set_stream(item->stream);
    if (item->raw) {
        item->tensor = (struct spw_torch_data_ptr){.data = raw_new_on(bytes, item->stream)};
    } else {
        item->tensor = tensor_new(bytes);
    }
    if (item->tensor.data == NULL) {
        atomic_fetch_add(&refused, 1);
        return false;
    }
    fill(item->tensor.data, item->words * 4, item->value, item->stream);
    MUST(cudaEventCreateWithFlags(&item->written, cudaEventDisableTiming));
    MUST(cudaEventRecord(item->written, item->stream));
    return true;
}

/* Checks on a stream, and frees without waiting. What raw_alloc gave has no record_stream: it is
 * checked on its own stream. */
static void finish(struct item *item, cudaStream_t stream)
{
    CUdeviceptr memory = (CUdeviceptr)(uintptr_t)item->tensor.data;
    CUdeviceptr there = (CUdeviceptr)(uintptr_t)bad;
    void *params[] = {&memory, &item->words, &item->value, &there};

    stream = item->raw ? item->stream : stream;
    MUST(cudaStreamWaitEvent(stream, item->written, 0));
    MUST(cuLaunchKernel(check, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    if (stream != item->stream) {
        tensor_use(&item->tensor, stream);
    }
    MUST(cudaEventDestroy(item->written));
    if (item->raw) {
        raw_end(item->tensor.data);
    } else {
        tensor_end(&item->tensor);
    }
    item->tensor.data = NULL;
}

static void exchange(struct thread *thread, struct item *item)
{
    struct item *place = &shelf[next_random(&thread->random) % SHELF];
    struct item taken;

    (void)pthread_mutex_lock(&shelf_lock);
    taken = *place;
    *place = *item;
    (void)pthread_mutex_unlock(&shelf_lock);
    *item = taken;
}

/* As torch.cuda.graph: a private pool, and a capture on a stream of its own. */
static void capture(struct thread *thread, uint64_t pool)
{
    struct spw_torch_data_ptr inside;
    cudaGraph_t graph;

    fake_set_stream(thread->captured);
    pool_begin(pool);
    MUST(cudaStreamBeginCapture(thread->captured, cudaStreamCaptureModeThreadLocal));
    inside = tensor_new(3000);
    MUST(cudaStreamEndCapture(thread->captured, &graph));
    pool_end(pool);
    MUST(cudaGraphDestroy(graph));
    tensor_end(&inside);
}

/* No free memory of the pool lies on another segment. Segments of the fake allocator, which have no
 * list of blocks, may: they were listed before, and may have ended. */
static void check_segments(void)
{
    size_t count;
    struct spw_torch_segment_info *segments = segments_new(0, &count);

    for (size_t i = 0; i < count; i++) {
        bool is_free = segments[i].requested_bytes == 0 && segments[i].blocks.begin != NULL;

        for (size_t j = 0; j < count && is_free; j++) {
            HOLD(i == j || segments[i].address + segments[i].total_bytes <= segments[j].address ||
                 segments[j].address + segments[j].total_bytes <= segments[i].address);
        }
    }
    segments_end(segments, count);
}

static void act_rarely(struct thread *thread, uint64_t pool)
{
    union stats stats;
    struct item item;

    switch (next_random(&thread->random) % 8) {
    case 0:
        capture(thread, pool);
        break;
    case 1:
        set_history(true);
        if (make(thread, &item)) {
            finish(&item, item.stream);
        }
        set_history(false);
        break;
    case 2:
        empty_cache();
        break;
    case 3:
        fake_set_stream(thread->streams[0]);
        pool_begin(pool);
        if (make(thread, &item)) {
            finish(&item, thread->streams[0]);
        }
        pool_end(pool);
        break;
    case 4:
        SLOT(RESET_PEAK_STATS, void, void *, int8_t)(fake_allocator, 0);
        break;
    case 5:
        check_segments();
        break;
    default:
        get_stats(&stats);
        HOLD(stats.figures.allocated_bytes[0].current >= 0);
    }
}

static void *run(void *argument)
{
    struct thread *thread = argument;
    uint64_t pool = 100 + thread->random;

    MUST(cudaSetDevice(0));
    for (int i = 0; i < STREAMS; i++) {
        MUST(cudaStreamCreateWithFlags(&thread->streams[i], cudaStreamNonBlocking));
    }
    MUST(cudaStreamCreateWithFlags(&thread->captured, cudaStreamNonBlocking));
    for (int i = 0; i < rounds; i++) {
        struct item item;

        if (one_in(thread, 16)) {
            act_rarely(thread, pool);
        }
        if (!make(thread, &item)) {
            item.tensor.data = NULL;
        }
        exchange(thread, &item);
        if (item.tensor.data != NULL) {
            finish(&item, thread->streams[next_random(&thread->random) % STREAMS]);
        }
    }
    return NULL;
}

static void enter(void)
{
    CUmodule module;

    MUST(cudaFree(NULL));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&check, module, "spw_check"));
    MUST(cuMemHostAlloc((void **)&bad, sizeof(*bad), 0));
    *bad = 0;
}

int main(int argc, char **argv)
{
    struct thread threads[THREADS] = {0};
    uint32_t seed = argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
    union stats stats;

    if (seed == 0) {
        fprintf(stderr, "usage: storm SEED ROUNDS\n");
        return 2;
    }
    rounds = atoi(argv[2]);
    enter();
    for (int i = 0; i < THREADS; i++) {
        threads[i].random = seed * 7919 + (uint32_t)i * 104729;
        MUST(pthread_create(&threads[i].id, NULL, run, &threads[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        MUST(pthread_join(threads[i].id, NULL));
    }
    for (int i = 0; i < SHELF; i++) {
        if (shelf[i].tensor.data != NULL) {
            finish(&shelf[i], shelf[i].stream);
        }
    }
    MUST(cudaDeviceSynchronize());
    empty_cache();
    get_stats(&stats);
    HOLD(stats.figures.allocation[0].current == 0);
    HOLD(stats.figures.active[0].current == 0);
    HOLD(stats.figures.allocated_bytes[0].current == 0);
    HOLD(stats.figures.allocated_bytes[0].allocated == stats.figures.allocated_bytes[0].freed);
    HOLD(fake_native_count() == 0);
    printf("refused: %d\nwrong: %" PRIu64 "\n", atomic_load(&refused), *bad);
    return *bad != 0;
}
