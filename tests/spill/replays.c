/* A program that launches two CUDA graphs in turn, of three blocks of 8 MiB each, while it holds
 * 32 MiB of others. It prints how many MiB came from the host to the device in the calls that
 * launch graphs, and how many words of its blocks are wrong, if any are.
 *
 *     replays ROUNDS HOW...   HOW is none, one or several of these words:
 *         copied      nodes copy within each block
 *         filled      nodes fill each block before
 *         nccl        a kernel has a name of NCCL's
 *         device      kernels can launch the graphs
 *         updated     the graphs are updated to ones of the same nodes in each round
 *         pointers    the first block of each graph once held the address of the second one
 *         brief       each graph is made executable anew, and destroyed, in each round
 *
 * Made for a device of 64 MiB. Exit 0 if every call succeeds. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "common.h"

enum { GRAPHS = 2, BLOCKS = 3, BYTES = 8 * MIB, WORDS = BYTES / 4, OTHERS = 4, LAUNCHES = 3 };
enum { AGE = 80 }; /* so many blocks freed make others old enough to move */

struct replay {
    CUdeviceptr blocks[BLOCKS];
    uint32_t expected[BLOCKS];
    CUgraph graph;
    CUgraphExec exec;
};

static CUfunction add_kernel, nccl_kernel;
static CUstream stream, side;
static struct replay replays[GRAPHS];
static uint64_t returned_bytes;
static const char *const *words;
static int word_count;

static bool is(const char *word)
{
    int i = 0;

    while (i < word_count && strcmp(words[i], word) != 0) {
        i++;
    }
    return i < word_count;
}

/* ---- what came back ---- */

/* Bytes that have moved to the device so far; 0 without spillway. */
static uint64_t promoted_bytes(void)
{
    typedef const char *name_of(size_t);
    typedef int counters_of(int, uint64_t *, size_t);
    name_of *name = (name_of *)(uintptr_t)dlsym(RTLD_DEFAULT, "spillway_counter_name");
    counters_of *counters = (counters_of *)(uintptr_t)dlsym(RTLD_DEFAULT, "spillway_counters");
    uint64_t values[256] = {0};
    size_t i = 0;

    if (name == NULL || counters == NULL || counters(0, values, 256) != 0) {
        return 0;
    }
    while (i < 256 && name(i) != NULL && strcmp(name(i), "promoted_bytes") != 0) {
        i++;
    }
    return i < 256 ? values[i] : 0;
}

/* ---- graphs ---- */

/* Launches a kernel with a name of NCCL's that reads the first block of a graph. */
static void launch_nccl(const struct replay *replay)
{
    enum { PARAMS = 24 };
    uint64_t nothing = 0, bytes = BYTES;
    void *params[PARAMS] = {(void *)(uintptr_t)&replay->blocks[0], &bytes};

    for (int i = 2; i < PARAMS; i++) {
        params[i] = &nothing;
    }
    MUST(cuLaunchKernel(nccl_kernel, 1, 1, 1, 32, 1, 1, 0, side, params, NULL));
}

/* Enqueues what a graph does: each of its blocks gets one more. */
static void submit(const struct replay *replay)
{
    for (int i = 0; i < BLOCKS; i++) {
        CUdeviceptr block = replay->blocks[i];

        if (is("filled")) {
            MUST(cuMemsetD32Async(block, 0, WORDS, side));
        }
        launch_add(add_kernel, &block, WORDS, side);
        if (is("copied")) {
            MUST(cuMemcpyDtoDAsync(block, block + BYTES / 2, BYTES / 2, side));
        }
    }
    if (is("nccl")) {
        launch_nccl(replay);
    }
}

static CUgraph capture(const struct replay *replay)
{
    CUgraph graph;

    MUST(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_RELAXED));
    submit(replay);
    MUST(cuStreamEndCapture(side, &graph));
    return graph;
}

static void make(struct replay *replay)
{
    replay->graph = capture(replay);
    MUST(cuGraphInstantiateWithFlags(&replay->exec, replay->graph,
                                     is("device") ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0));
}

static void unmake(struct replay *replay)
{
    MUST(cuGraphExecDestroy(replay->exec));
    MUST(cuGraphDestroy(replay->graph));
}

static void update(struct replay *replay)
{
    CUgraphExecUpdateResultInfo result;
    CUgraph graph = capture(replay);

    MUST(cuGraphExecUpdate(replay->exec, graph, &result));
    MUST(cuGraphDestroy(graph));
}

/* Notes what a launch does. */
static void count_launch(struct replay *replay)
{
    for (int i = 0; i < BLOCKS; i++) {
        replay->expected[i] = is("filled") ? 1 : replay->expected[i] + 1;
    }
}

static void launch(struct replay *replay)
{
    if (is("brief")) {
        unmake(replay);
        make(replay);
    }
    if (is("updated")) {
        update(replay);
    }
    for (int i = 0; i < LAUNCHES; i++) {
        uint64_t before = promoted_bytes();

        MUST(cuGraphLaunch(replay->exec, side));
        returned_bytes += promoted_bytes() - before;
        count_launch(replay);
    }
    MUST(cuStreamSynchronize(side));
}

/* ---- other memory ---- */

static CUdeviceptr others[OTHERS];
static uint32_t other_value;

/* Allocates the others, for which older blocks leave the device. */
static void press(int round)
{
    CUdeviceptr brief;

    for (int i = 0; i < AGE; i++) {
        MUST(cuMemAllocAsync(&brief, 512, stream));
        MUST(cuMemFreeAsync(brief, stream));
    }
    for (int i = 0; i < OTHERS; i++) {
        other_value = new_block(&others[i], round, WORDS, stream) + 1;
        launch_add(add_kernel, &others[i], WORDS, stream);
    }
    MUST(cuStreamSynchronize(stream));
}

/* Frees them. Returns how many words of them are wrong. */
static size_t relieve(void)
{
    size_t wrong = 0;

    for (int i = 0; i < OTHERS; i++) {
        wrong += count_wrong(others[i], WORDS, other_value);
        MUST(cuMemFreeAsync(others[i], stream));
    }
    return wrong;
}

static void prepare(struct replay *replay, int number)
{
    for (int i = 0; i < BLOCKS; i++) {
        replay->expected[i] = new_block(&replay->blocks[i], number, WORDS, stream);
    }
}

/* The copy is of the block's own first words, so that its content stays; spillway sees an address
 * among them. */
static void hold_pointer(const struct replay *replay)
{
    CUdeviceptr words_there[1] = {replay->blocks[1]};
    uint32_t kept[2];

    MUST(cuMemcpyDtoH(kept, replay->blocks[0], sizeof(kept)));
    MUST(cuMemcpyHtoD(replay->blocks[0], words_there, sizeof(words_there)));
    MUST(cuMemcpyHtoD(replay->blocks[0], kept, sizeof(kept)));
    MUST(cuCtxSynchronize()); /* the copies are in the order of another stream */
}

/* Returns how many words are wrong. */
static size_t end(struct replay *replay)
{
    size_t wrong = 0;

    unmake(replay);
    for (int i = 0; i < BLOCKS; i++) {
        wrong += count_wrong(replay->blocks[i], WORDS, replay->expected[i]);
        MUST(cuMemFreeAsync(replay->blocks[i], stream));
    }
    MUST(cuStreamSynchronize(stream));
    return wrong;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    size_t wrong = 0;
    CUmodule module;

    words = (const char *const *)(argv + 2);
    word_count = argc - 2;
    enter_device(0, &module);
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuModuleGetFunction(&nccl_kernel, module, "spw_touch_ncclDevKernel"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < GRAPHS; i++) {
        prepare(&replays[i], i + 1);
    }
    MUST(cuCtxSynchronize());
    for (int i = 0; i < GRAPHS; i++) {
        make(&replays[i]);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < GRAPHS; i++) {
            press(round);
            if (is("pointers")) {
                hold_pointer(&replays[i]);
            }
            launch(&replays[i]);
            wrong += relieve();
        }
    }
    for (int i = 0; i < GRAPHS; i++) {
        wrong += end(&replays[i]);
    }
    trim_pool();
    printf("%llu MiB came back\n", (unsigned long long)(returned_bytes / MIB));
    if (wrong > 0) {
        printf("%zu words wrong\n", wrong);
    }
    return 0;
}
