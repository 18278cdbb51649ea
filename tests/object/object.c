/* PyTorch's allocator at work for a program, by the object that src/torch/ changes. Prints what
 * must be the same with the pool and without, and on stderr how many segments the native allocator
 * got; the first argument is the name of a case. */
#include "allocator.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static void show_stat(const char *name, const struct spw_torch_stat *stats)
{
    for (int kind = 0; kind < SPW_TORCH_KINDS; kind++) {
        printf(" %s %" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, kind == 0 ? name : "",
               stats[kind].current, stats[kind].peak, stats[kind].allocated, stats[kind].freed);
    }
    printf("\n");
}

/* The figures that do not tell who serves. */
static void show_stats(const char *when)
{
    const struct spw_torch_row *row = spw_torch_row_of(2, 11);
    union stats stats;

    get_stats(&stats);
    printf("%s:\n", when);
    show_stat("blocks", stats.figures.allocation);
    show_stat("active", stats.figures.active);
    show_stat("bytes", stats.figures.allocated_bytes);
    show_stat("active bytes", (struct spw_torch_stat *)(stats.bytes + row->active_bytes));
    show_stat("requested", (struct spw_torch_stat *)(stats.bytes + row->requested_bytes));
    HOLD(stats.figures.reserved_bytes[0].current >= stats.figures.allocated_bytes[0].current);
    HOLD(stats.figures.reserved_bytes[0].peak >= stats.figures.allocated_bytes[0].peak);
}

static void reset_peaks(void)
{
    SLOT(RESET_PEAK_STATS, void, void *, int8_t)(fake_allocator, 0);
}

static void reset_accumulated(void)
{
    SLOT(RESET_ACCUMULATED_STATS, void, void *, int8_t)(fake_allocator, 0);
}

static struct spw_torch_data_ptr private_new(size_t bytes)
{
    struct spw_torch_data_ptr tensor;

    pool_begin(1);
    tensor = tensor_new(bytes);
    pool_end(1);
    return tensor;
}

/* Writes on the current stream, reads back. */
static void check_memory(const struct spw_torch_data_ptr *tensor, size_t bytes, uint32_t value)
{
    fill(tensor->data, bytes, value, NULL);
    HOLD(count_wrong(tensor->data, bytes & ~(size_t)3, value, NULL) == 0);
}

static void plain(void)
{
    struct spw_torch_data_ptr tensors[] = {tensor_new(100), tensor_new(MIB), tensor_new(MIB + 1)};
    size_t bytes[] = {100, MIB, MIB + 1};

    for (int i = 0; i < 3; i++) {
        HOLD(tensors[i].data == tensors[i].context && tensors[i].device_type == SPW_TORCH_CUDA &&
             tensors[i].device == 0);
        check_memory(&tensors[i], bytes[i], (uint32_t)i + 7);
    }
    show_stats("three");
    tensor_end(&tensors[0]);
    tensor_end(&tensors[2]);
    show_stats("one");
    reset_peaks();
    show_stats("without peaks");
    reset_accumulated();
    show_stats("without sums");
    tensor_end(&tensors[1]);
    show_stats("none");
    HOLD(tensor_new(0).data == NULL);
}

/* Both parts have memory, and their own peaks are at different times. */
static void both(void)
{
    struct spw_torch_data_ptr first = tensor_new(4 * MIB), second, third;

    second = private_new(2 * MIB);
    show_stats("six");
    tensor_end(&first);
    third = private_new(3 * MIB);
    show_stats("five, at most six");
    first = tensor_new(MIB);
    HOLD(fake_native_count() >= 2);
    check_memory(&first, MIB, 1);
    check_memory(&second, 2 * MIB, 2);
    check_memory(&third, 3 * MIB, 3);
    tensor_end(&second);
    reset_peaks();
    show_stats("four, at most four");
    tensor_end(&first);
    tensor_end(&third);
    show_stats("none");
}

/* The first request finds the library without CUDA. */
static void before(void)
{
    void *early = raw_new(3 * MIB);
    void *late;

    printf("native: %d\n", fake_native_count());
    late = raw_new(2 * MIB);
    HOLD(early != NULL && late != NULL);
    show_stats("both");
    raw_end(early);
    raw_end(late);
    show_stats("none");
}

static void *end_elsewhere(void *tensors)
{
    struct spw_torch_data_ptr *all = tensors;

    tensor_end(&all[0]);
    tensor_end(&all[1]);
    raw_end(all[2].data);
    raw_end(all[3].data);
    return NULL;
}

/* Frees of both kinds on another thread, which has no context. */
static void elsewhere(void)
{
    struct spw_torch_data_ptr tensors[4] = {tensor_new(MIB), private_new(MIB), tensor_new(MIB),
                                            private_new(MIB)};
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, end_elsewhere, tensors));
    MUST(pthread_join(thread, NULL));
    HOLD(fake_native_count() == 0);
    show_stats("none");
}

static void *allocate_without_context(void *bytes)
{
    return raw_new(*(size_t *)bytes);
}

/* A thread whose first act is to allocate. */
static void without_context(void)
{
    size_t bytes = MIB;
    pthread_t thread;
    void *memory;

    MUST(cudaFree(NULL));
    MUST(pthread_create(&thread, NULL, allocate_without_context, &bytes));
    MUST(pthread_join(thread, &memory));
    HOLD(memory != NULL);
    fill(memory, bytes, 5, NULL);
    HOLD(count_wrong(memory, bytes, 5, NULL) == 0);
    show_stats("one");
    raw_end(memory);
}

/* Every DataPtr has the function of raw_deleter, by which PyTorch knows its own. */
static void deleters(void)
{
    struct spw_torch_data_ptr ours = tensor_new(MIB), natives = private_new(MIB);
    spw_torch_deleter *raw = SLOT(RAW_DELETER, spw_torch_deleter *, void *)(fake_allocator);
    struct fake_checkpoint checkpoint = {{0, 9}, 2, MIB};
    struct spw_torch_checkpoint delta;
    struct spw_torch_data_ptr *made;

    HOLD(ours.deleter == raw && natives.deleter == raw);
    CALL_INTO(SET_CHECKPOINT_POOL_STATE, into_state_function, &delta, fake_allocator, 0,
              &checkpoint);
    made = delta.allocated.begin;
    show_stats("four");
    for (int i = 0; i < 2; i++) {
        HOLD(made[i].deleter == raw);
        tensor_end(&made[i]);
    }
    fake_delete(made);
    raw(ours.data);
    raw(natives.data);
    raw(NULL);
    HOLD(fake_native_count() == 0);
    show_stats("none");
}

static void bases(void)
{
    struct spw_torch_data_ptr tensors[] = {tensor_new(MIB - 3), private_new(MIB - 3)};

    for (int i = 0; i < 2; i++) {
        size_t bytes = 0;
        void *base = SLOT(GET_BASE_ALLOCATION, void *, void *, void *,
                          size_t *)(fake_allocator, tensors[i].data, &bytes);

        HOLD(base == tensors[i].data);
        printf("%zu bytes\n", bytes);
        HOLD(SLOT(GET_BASE_ALLOCATION, void *, void *, void *,
                  size_t *)(fake_allocator, tensors[i].data, NULL) == base);
        tensor_end(&tensors[i]);
    }
}

/* What is free goes back to the driver. */
static void emptied(void)
{
    struct spw_torch_data_ptr ours = tensor_new(20 * MIB), natives = private_new(20 * MIB);
    size_t left, before, total;
    union stats stats;

    MUST(cudaMemGetInfo(&before, &total));
    tensor_end(&ours);
    tensor_end(&natives);
    empty_cache();
    MUST(cudaMemGetInfo(&left, &total));
    get_stats(&stats);
    printf("%zu MiB more, reserved %" PRId64 "\n", (left - before) / MIB,
           stats.figures.reserved_bytes[0].current);
}

static void try(const char *what, size_t mib)
{
    void *memory = raw_new(mib * MIB);

    printf("%s: %s\n", what, memory != NULL ? "had" : "refused");
}

/* Half of the device for both parts together. */
static void fraction(void)
{
    struct spw_torch_data_ptr natives = private_new(20 * MIB);

    set_fraction(0.5);
    try("10 of 64 MiB", 10);
    try("beyond the half", 10);
    tensor_end(&natives);
    empty_cache();
    try("again", 10);
    set_fraction(1);
    try("beyond the half", 20);
}

static void special(void)
{
    struct spw_torch_data_ptr tensors[6] = {tensor_new(MIB)};

    HOLD(fake_native_count() <= 1);
    set_history(true);
    tensors[1] = tensor_new(MIB);
    set_history(false);
    tensors[2] = tensor_new(MIB);
    set_enabled(false);
    tensors[3] = tensor_new(MIB);
    set_enabled(true);
    tensors[4] = tensor_new(MIB);
    SLOT(ATTACH_TRACE_TRACKER, void, void *, void *)(fake_allocator, NULL);
    tensors[5] = tensor_new(MIB);
    show_stats("six");
    for (int i = 0; i < 6; i++) {
        tensor_end(&tensors[i]);
    }
    show_stats("none");
}

static void traced(void)
{
    struct spw_torch_data_ptr tensor, profiled;

    fake_traced = true;
    tensor = tensor_new(MIB);
    fake_traced = false;
    fake_profiled = true;
    profiled = tensor_new(1000);
    if (atomic_load(&fake_reported) != 0) {
        HOLD(atomic_load(&fake_reported) == 1024);
    }
    tensor_end(&profiled);
    fake_profiled = false;
    tensor_end(&tensor);
    printf("reported: %" PRId64 "\n", atomic_load(&fake_reported));
}

static void refusal(void)
{
    struct spw_torch_data_ptr first = tensor_new((size_t)40 * MIB);

    try("beyond the device", 40);
    tensor_end(&first);
    try("again", 40);
}

/* More than the device has. */
static void spilled(void)
{
    struct spw_torch_data_ptr tensors[4];

    for (int i = 0; i < 4; i++) {
        tensors[i] = tensor_new((size_t)40 * MIB);
        HOLD(tensors[i].data != NULL);
        fill(tensors[i].data, (size_t)40 * MIB, (uint32_t)i + 100, NULL);
    }
    for (int i = 0; i < 4; i++) {
        HOLD(count_wrong(tensors[i].data, (size_t)40 * MIB, (uint32_t)i + 100, NULL) == 0);
        tensor_end(&tensors[i]);
    }
}

static int by_size(const void *a, const void *b)
{
    const struct spw_torch_segment_info *first = a, *second = b;

    return (first->total_bytes > second->total_bytes) - (first->total_bytes < second->total_bytes);
}

/* Unused segments differ: the fake allocator has no cache. */
static void show_segments(const char *which, uint64_t pool)
{
    size_t count;
    struct spw_torch_segment_info *segments = segments_new(pool, &count);
    uint64_t unused = 0;

    qsort(segments, count, sizeof(*segments), by_size);
    printf("%s:", which);
    for (size_t i = 0; i < count; i++) {
        if (segments[i].requested_bytes > 0) {
            printf(" %" PRIu64 " (%" PRIu64 ")", segments[i].total_bytes,
                   segments[i].requested_bytes);
        } else {
            unused += segments[i].total_bytes;
        }
    }
    printf("\n");
    fprintf(stderr, "unused in %s: %" PRIu64 "\n", which, unused);
    segments_end(segments, count);
}

static void snapshots(void)
{
    struct spw_torch_data_ptr tensors[] = {tensor_new(MIB), tensor_new(1000), private_new(3000)};

    show_segments("all", 0);
    show_segments("of the private pool", 1);
    for (int i = 0; i < 3; i++) {
        tensor_end(&tensors[i]);
    }
    empty_cache();
    show_segments("none", 0);
}

/* A capture makes requests the native allocator's, also without a private pool. */
static void captured(void)
{
    struct spw_torch_data_ptr tensor, inside;
    cudaStream_t stream;
    cudaGraph_t graph;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fake_set_stream(stream);
    tensor = tensor_new(MIB);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    inside = tensor_new(MIB);
    HOLD(inside.data != NULL);
    tensor_end(&tensor);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphDestroy(graph));
    HOLD(fake_native_count() >= 1);
    tensor_end(&inside);
    tensor = tensor_new(MIB);
    tensor_end(&tensor);
    show_stats("none");
}

/* The program uses memory before PyTorch is there, whose first request is the native allocator's.
 */
static void arrive_late(void)
{
    void *memory;

    MUST(cudaMalloc(&memory, MIB));
    MUST(cudaFree(memory));
    fake_arrive();
    raw_end(raw_new(5000));
    HOLD(fake_native_count() == 0);
    empty_cache();
    reset_peaks();
    reset_accumulated();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        bool cold; /* CUDA is not in use before */
    } cases[] = {{"plain", plain, false},
                 {"both", both, false},
                 {"before", before, true},
                 {"elsewhere", elsewhere, false},
                 {"context", without_context, false},
                 {"deleters", deleters, false},
                 {"bases", bases, false},
                 {"emptied", emptied, false},
                 {"fraction", fraction, false},
                 {"special", special, false},
                 {"traced", traced, false},
                 {"refusal", refusal, false},
                 {"spilled", spilled, false},
                 {"snapshots", snapshots, false},
                 {"captured", captured, false}};

    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            MUST(cases[i].cold ? 0 : cudaFree(NULL));
            if (atomic_load(&fake_allocator) == NULL) {
                arrive_late();
            }
            cases[i].run();
            fprintf(stderr, "segments: %d\n", fake_native_asked());
            return 0;
        }
    }
    fprintf(stderr, "usage: object CASE\n");
    return 2;
}
