/* Uses blocks of changing content on several threads, and checks them, for test_pause.py.
 *
 *     paused THREADS DEVICES   works until its input ends, and prints how many steps were done,
 *                              many times a second; "ok" at the end
 *     paused keep THREADS DEVICES     the same, and no block is freed before the end
 *     paused graphs THREADS DEVICES   the same as the first, and each thread launches a CUDA graph
 *                              at each step
 *     paused asked ROUNDS COMMAND     lets the command `spillway` pause it until it needs its
 *                              memory, while threads launch graphs
 *     paused tries ROUNDS COMMAND TO  the same, with `--to TO`, and goes on if that is refused
 *     paused api ROUNDS        pauses and resumes itself
 *     paused graph             is paused by its own thread while a graph is captured
 *     paused ring FILE NUMBER COUNT AHEAD   one of COUNT processes, whose streams wait for each
 *                              other at each step through a file in memory. Each allocates and
 *                              frees memory in between, and submits AHEAD steps before it waits
 *     paused spin              its device never becomes idle before the input ends
 *     paused inside            the same, and a thread waits for it inside a copy
 *     paused greedy            the same, and a thread asks for too much memory all the time; how
 *                              often it was refused is printed
 *     paused creating          the same with cuMemCreate */
#include "common.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "spillway.h"

enum { THREADS = 8, BLOCKS = 6, WORDS = 5 * MIB / 4, PRINT_MS = 20, ASKED_STEPS = 10 };

struct worker {
    pthread_t thread;
    CUcontext context;
    CUstream stream;
    CUdeviceptr blocks[BLOCKS];
    uint32_t values[BLOCKS];
    uint32_t seed;
    CUgraphExec graph;            /* NULL: none */
    CUdeviceptr source, captured; /* the graph copies the one to the other */
};

/* As enter_device, without a module, which a real driver would not load. */
static CUcontext enter(CUdevice device)
{
    CUcontext context;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    return context;
}

/* A number that the compiler does not know: it might unroll a loop, and make several call sites of
 * one. */
static volatile int one_site = BLOCKS;

static struct worker workers[THREADS];
static pthread_barrier_t all_have_blocks; /* no step is done before */
static bool with_graphs, keeps_blocks;
static _Atomic bool ends;
static _Atomic unsigned long steps;

static uint32_t draw(struct worker *worker)
{
    worker->seed = worker->seed * 1664525 + 1013904223;
    return worker->seed >> 8;
}

static void check(CUdeviceptr block, uint32_t value, CUstream stream)
{
    size_t wrong;

    MUST(cuStreamSynchronize(stream));
    wrong = count_wrong(block, WORDS, value);
    if (wrong > 0) {
        printf("%zu words wrong\n", wrong);
        exit(1);
    }
}

/* ---- graphs ---- */

static void make_graph(struct worker *worker)
{
    CUgraph graph;

    (void)new_block(&worker->source, 0, WORDS, worker->stream);
    (void)new_block(&worker->captured, 0, WORDS, worker->stream);
    MUST(cuStreamSynchronize(worker->stream));
    MUST(cuStreamBeginCapture(worker->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemsetD32Async(worker->captured, 7, WORDS, worker->stream));
    MUST(cuMemcpyDtoDAsync(worker->captured, worker->source, WORDS * sizeof(uint32_t),
                           worker->stream));
    MUST(cuStreamEndCapture(worker->stream, &graph));
    MUST(cuGraphInstantiate(&worker->graph, graph, 0));
    MUST(cuGraphDestroy(graph));
}

/* Gives the graph something new to copy, and checks what it made of it. */
static void launch_graph(struct worker *worker)
{
    uint32_t value = draw(worker);

    MUST(cuMemsetD32Async(worker->source, value, WORDS, worker->stream));
    MUST(cuGraphLaunch(worker->graph, worker->stream));
    check(worker->captured, value, worker->stream);
}

static void end_graph(struct worker *worker)
{
    MUST(cuGraphExecDestroy(worker->graph));
    MUST(cuMemFreeAsync(worker->source, worker->stream));
    MUST(cuMemFreeAsync(worker->captured, worker->stream));
}

/* ---- work ---- */

/* Checks a block and changes it, or replaces it by another one. */
static void step(struct worker *worker)
{
    size_t i = draw(worker) % BLOCKS;

    if (worker->graph != NULL) {
        launch_graph(worker);
    }
    check(worker->blocks[i], worker->values[i], worker->stream);
    if (draw(worker) % 4 == 0 && !keeps_blocks) {
        MUST(cuMemFreeAsync(worker->blocks[i], worker->stream));
        worker->values[i] =
            new_block(&worker->blocks[i], (int)(draw(worker) % 1000), WORDS, worker->stream);
    } else {
        size_t from = draw(worker) % BLOCKS;

        MUST(cuMemcpyDtoDAsync(worker->blocks[i], worker->blocks[from], WORDS * sizeof(uint32_t),
                               worker->stream));
        worker->values[i] = worker->values[from];
    }
    atomic_fetch_add(&steps, 1);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    MUST(cuCtxSetCurrent(worker->context));
    MUST(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < one_site; i++) {
        worker->values[i] = new_block(&worker->blocks[i], i, WORDS, worker->stream);
    }
    if (with_graphs) {
        make_graph(worker);
    }
    (void)pthread_barrier_wait(&all_have_blocks);
    while (!atomic_load(&ends)) {
        step(worker);
    }
    if (with_graphs) {
        end_graph(worker);
    }
    for (int i = 0; i < BLOCKS; i++) {
        check(worker->blocks[i], worker->values[i], worker->stream);
        MUST(cuMemFreeAsync(worker->blocks[i], worker->stream));
    }
    MUST(cuStreamSynchronize(worker->stream));
    return NULL;
}

static void start_workers(int threads, int devices)
{
    MUST(pthread_barrier_init(&all_have_blocks, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) {
        workers[i].context = enter(i % devices);
        workers[i].seed = (uint32_t)i;
        MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
}

static void end_workers(int threads, int devices)
{
    atomic_store(&ends, true);
    for (int i = 0; i < threads; i++) {
        MUST(pthread_join(workers[i].thread, NULL));
    }
    MUST(pthread_barrier_destroy(&all_have_blocks));
    for (int i = 0; i < threads; i++) {
        MUST(cuDevicePrimaryCtxRelease(i % devices));
    }
}

/* Runs `command` pause --on-demand for this process. `to`: where its memory goes, and then the
 * pause may be refused; NULL: to the host. */
static void ask_for_pause(const char *command, const char *to)
{
    char pid[16];
    const char *words[] = {command, "pause", "--on-demand", pid, to != NULL ? "--to" : NULL,
                           to,      NULL};
    int status = -1;
    pid_t child;

    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    MUST(posix_spawn(&child, command, NULL, NULL, (char *const *)words, environ));
    if (waitpid(child, &status, 0) != child ||
        (status != 0 && (to == NULL || !WIFEXITED(status) || WEXITSTATUS(status) != 1))) {
        printf("%s: status %#x\n", command, (unsigned)status);
        exit(1);
    }
}

static void work_and_ask(int rounds, const char *command, const char *to)
{
    with_graphs = true;
    start_workers(2, 1);
    for (int i = 0; i < rounds; i++) {
        unsigned long before = atomic_load(&steps);

        while (atomic_load(&steps) < before + ASKED_STEPS) {
            (void)usleep(1000);
        }
        ask_for_pause(command, to);
    }
    end_workers(2, 1);
    printf("%lu steps\n", atomic_load(&steps));
}

/* Prints the steps until the input ends. */
static void print_steps(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    do {
        printf("%lu\n", atomic_load(&steps));
        fflush(stdout);
    } while (poll(&input, 1, PRINT_MS) == 0);
}

static void work_on_threads(int threads, int devices)
{
    start_workers(threads, devices);
    print_steps();
    end_workers(threads, devices);
}

/* A function of spillway.h. */
static int call(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    int (*function)(void);

    memcpy(&function, &found, sizeof(function));
    return function == NULL ? -1 : function();
}

/* Device memory that the pool has, in MiB. */
static uint64_t committed(void)
{
    struct spillway_stats stats = {.size = sizeof(stats)};
    void *found = dlsym(RTLD_DEFAULT, "spillway_stats");
    int (*function)(int, struct spillway_stats *);

    memcpy(&function, &found, sizeof(function));
    MUST(function(0, &stats));
    return stats.committed_bytes / MIB;
}

static void pause_itself(int rounds)
{
    struct worker worker = {.stream = NULL};

    printf("early %d\n", call("spillway_pause"));
    worker.context = enter(0);
    printf("unused %d\n", call("spillway_pause"));
    for (int i = 0; i < BLOCKS; i++) {
        worker.values[i] = new_block(&worker.blocks[i], i, WORDS, NULL);
    }
    for (int i = 0; i < rounds; i++) {
        printf("pause %d", call("spillway_pause"));
        printf(", left %" PRIu64, committed());
        for (int k = 0; k < BLOCKS; k++) {
            step(&worker); /* on the host */
            MUST(cuCtxSynchronize());
        }
        printf(", used %" PRIu64, committed());
        MUST(call("spillway_resume"));
        step(&worker);
        printf(", back %" PRIu64 "\n", committed());
    }
    for (int i = 0; i < BLOCKS; i++) {
        check(worker.blocks[i], worker.values[i], NULL);
        MUST(cuMemFreeAsync(worker.blocks[i], NULL));
    }
    MUST(cuCtxSynchronize());
    MUST(cuDevicePrimaryCtxRelease(0));
}

static void pause_in_capture(void)
{
    CUdeviceptr block;
    CUstream stream;
    CUgraph graph;

    (void)enter(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    new_block(&block, 1, WORDS, NULL);
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    printf("capturing %d\n", call("spillway_pause"));
    MUST(cuMemsetD32Async(block, 7, WORDS, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    printf("captured %d\n", call("spillway_pause"));
    check(block, 1000, NULL);
}

/* ---- processes that wait for each other ---- */

/* In memory that the processes share. */
struct flags {
    _Atomic uint32_t steps[THREADS]; /* that the stream of each process has begun */
    _Atomic uint32_t last;           /* step of all; 0: not known yet */
};

struct rank {
    struct flags *flags;
    CUdeviceptr flag; /* the device's address of the flags */
    int number, count;
    CUstream stream;
    CUdeviceptr block;
};

/* A step is done when all processes have begun it. */
static void submit_step(struct rank *rank, uint32_t i)
{
    CUdeviceptr large;

    MUST(cuMemFreeAsync(rank->block, rank->stream));
    (void)new_block(&rank->block, 1, WORDS, rank->stream);
    (void)new_block(&large, 1, 2 * WORDS, rank->stream);
    MUST(cuStreamWriteValue32(rank->stream, rank->flag + 4 * (CUdeviceptr)rank->number, i, 0));
    for (int k = 0; k < rank->count; k++) {
        MUST(cuStreamWaitValue32(rank->stream, rank->flag + 4 * (CUdeviceptr)k, i,
                                 CU_STREAM_WAIT_VALUE_GEQ));
    }
    MUST(cuMemsetD32Async(large, i, 2 * WORDS, rank->stream));
    MUST(cuMemcpyDtoDAsync(rank->block, large, WORDS * sizeof(uint32_t), rank->stream));
    MUST(cuMemFreeAsync(large, rank->stream));
}

/* Prints the step, but not more often than somebody reads. */
static void print_step(uint32_t i)
{
    static uint64_t printed_ns;
    struct timespec time;
    uint64_t now_ns;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    now_ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    if (now_ns - printed_ns > UINT64_C(1000000) * PRINT_MS) {
        printed_ns = now_ns;
        printf("%" PRIu32 "\n", i);
        fflush(stdout);
    }
}

static void open_flags(const char *path, struct rank *rank)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    rank->flags = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(cuMemHostRegister(rank->flags, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&rank->flag, rank->flags, 0));
}

static void step_together(const char *path, struct rank *rank, uint32_t ahead)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool told = false;

    (void)enter(rank->number);
    MUST(cuStreamCreate(&rank->stream, CU_STREAM_NON_BLOCKING));
    open_flags(path, rank);
    (void)new_block(&rank->block, 1, WORDS, rank->stream);
    for (uint32_t i = 1; atomic_load(&rank->flags->last) == 0 || i <= rank->flags->last; i++) {
        submit_step(rank, i);
        if (i % ahead == 0) {
            check(rank->block, i, rank->stream);
            print_step(i);
        }
        /* Others are not more than `ahead` steps further. */
        if (!told && rank->number == 0 && poll(&input, 1, 0) != 0) {
            atomic_store(&rank->flags->last, (i / ahead + 3) * ahead);
            told = true;
        }
    }
}

struct copy {
    CUcontext context;
    CUdeviceptr block;
    uint32_t word;
};

static void *copy_word(void *argument)
{
    struct copy *copy = argument;

    MUST(cuCtxSetCurrent(copy->context));
    MUST(cuMemcpyDtoH(&copy->word, copy->block, sizeof(copy->word)));
    return NULL;
}

static CUresult create(void)
{
    const CUmemAllocationProp device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;

    return cuMemCreate(&handle, 64 * MIB, &device, 0);
}

/* Memory is asked for by cuMemCreate. */
static bool creates;

/* Until there is no room any more, and longer. */
static void *ask_for_too_much(void *context)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(context));
    while (!atomic_load(&ends)) {
        CUresult result = creates ? create() : cuMemAlloc(&block, 64 * MIB);

        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            atomic_fetch_add(&steps, 1);
        }
    }
    return NULL;
}

/* A stream waits for a value that is written at the end. `inside`: a copy waits for the stream.
 * `greedy`: a thread asks for memory meanwhile. */
static void spin(bool inside, bool greedy)
{
    struct copy copy = {.context = enter(0)};
    pthread_t asking;
    CUdeviceptr block, flag;
    pthread_t copier;
    CUstream stream;
    void *host;

    MUST(cuStreamCreate(&stream, inside ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc(&host, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&flag, host, 0));
    *(uint32_t *)host = 0;
    new_block(&block, 1, WORDS, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    if (inside) {
        copy.block = block;
        MUST(pthread_create(&copier, NULL, copy_word, &copy));
    }
    if (greedy) {
        MUST(pthread_create(&asking, NULL, ask_for_too_much, copy.context));
    }
    print_steps();
    atomic_store(&ends, true);
    if (greedy) {
        MUST(pthread_join(asking, NULL));
    }
    atomic_store((_Atomic uint32_t *)host, 1);
    if (inside) {
        MUST(pthread_join(copier, NULL));
        MUST(copy.word != 1000);
    }
    MUST(cuStreamSynchronize(stream));
    check(block, 1000, NULL);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "api") == 0) {
        pause_itself(atoi(argv[2]));
    } else if (argc == 3) {
        work_on_threads(atoi(argv[1]), atoi(argv[2]));
    } else if (argc == 4 && (strcmp(argv[1], "graphs") == 0 || strcmp(argv[1], "keep") == 0)) {
        with_graphs = strcmp(argv[1], "graphs") == 0;
        keeps_blocks = !with_graphs;
        work_on_threads(atoi(argv[2]), atoi(argv[3]));
    } else if (argc == 4 && strcmp(argv[1], "asked") == 0) {
        work_and_ask(atoi(argv[2]), argv[3], NULL);
    } else if (argc == 5 && strcmp(argv[1], "tries") == 0) {
        work_and_ask(atoi(argv[2]), argv[3], argv[4]);
    } else if (argc == 6) {
        struct rank rank = {.number = atoi(argv[3]), .count = atoi(argv[4])};

        step_together(argv[2], &rank, (uint32_t)atoi(argv[5]));
    } else if (argc == 2 && strcmp(argv[1], "graph") == 0) {
        pause_in_capture();
    } else if (argc == 2) {
        creates = strcmp(argv[1], "creating") == 0;
        spin(strcmp(argv[1], "inside") == 0, creates || strcmp(argv[1], "greedy") == 0);
    } else {
        return 2;
    }
    puts("ok");
    return 0;
}
