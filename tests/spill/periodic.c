/* A program that repeats its steps, made for a device of 64 MiB, which is too small for it.
 *
 *     periodic STEPS MODE...
 *
 * Takes STEPS steps in each mode, one mode after the other. In a step, kernels add to blocks that
 * stay, one by one and back again, and beside each to one that comes and goes. All content is
 * checked at the end, and differences are printed. The modes are:
 *     named      every kernel's arguments name what it adds to
 *     unnamed    others add to further blocks that only a pointer in memory tells of
 *     otherwise  as `named`, in another order
 *     unknown    as `named`, with calls of which no memory is known: uploads of a graph
 *     check      no steps: the content is checked, once more than at the end
 *     counters   no steps: spillway's counters are printed, one a line, as far as it is loaded
 * Exit 0 when all content was right. */
#include <cuda.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { BLOCKS = 24, LEAST_BYTES = 3 * MIB, SOME_WORDS = 1024 };

struct mode {
    const char *name;
    int stride; /* from one block to the next; no divisor of BLOCKS but 1 */
    bool unnamed, unknown;
    void (*instead)(void); /* of the steps; NULL: steps are taken */
};

static void check(void);
static void print_counters(void);

static const struct mode modes[] = {
    {.name = "named", .stride = 1},      {.name = "unnamed", .stride = 1, .unnamed = true},
    {.name = "otherwise", .stride = 7},  {.name = "unknown", .stride = 1, .unknown = true},
    {.name = "check", .instead = check}, {.name = "counters", .instead = print_counters},
};

static CUfunction add_kernel, through_kernel;
static CUstream stream;
static CUgraphExec graph;
static CUdeviceptr blocks[BLOCKS];
static CUdeviceptr table; /* their addresses, in the device's memory, and a word */
static uint32_t expected[BLOCKS];
static int status;

/* Each block has its own size, so that the predictor can tell them apart. */
static size_t bytes_of(int block)
{
    return LEAST_BYTES + 512 * ((size_t)block + 1);
}

static void launch(CUfunction kernel, CUdeviceptr address, size_t words)
{
    launch_add(kernel, &address, words, stream);
}

static void add(int block)
{
    launch(add_kernel, blocks[block], bytes_of(block) / 4);
    expected[block]++;
}

static void add_unnamed(int block)
{
    launch(through_kernel, table + (CUdeviceptr)block * sizeof(CUdeviceptr), bytes_of(block) / 4);
    expected[block]++;
}

/* A graph of one memset of its own word. */
static void make_graph(void)
{
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = table + sizeof(blocks), .value = 1, .elementSize = 4, .width = 1, .height = 1};
    CUgraphNode node;
    CUcontext context;
    CUgraph made;

    MUST(cuCtxGetCurrent(&context));
    MUST(cuGraphCreate(&made, 0));
    MUST(cuGraphAddMemsetNode(&node, made, NULL, 0, &params, context));
    MUST(cuGraphInstantiate(&graph, made, 0));
    MUST(cuGraphDestroy(made));
}

/* By memsets, whose values spillway does not look at. */
static void fill_table(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        CUdeviceptr entry = table + (CUdeviceptr)i * sizeof(CUdeviceptr);

        MUST(cuMemsetD32(entry, (uint32_t)blocks[i], 1));
        MUST(cuMemsetD32(entry + 4, (uint32_t)(blocks[i] >> 32), 1));
    }
    MUST(cuCtxSynchronize());
}

static void start(void)
{
    CUmodule module;

    enter_device(0, &module);
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuModuleGetFunction(&through_kernel, module, "spw_add_through"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < BLOCKS; i++) {
        expected[i] = new_block(&blocks[i], i, bytes_of(i) / 4, stream);
    }
    MUST(cuMemAlloc(&table, sizeof(blocks) + sizeof(uint32_t)));
    make_graph();
    fill_table();
}

static void visit(const struct mode *mode, int block)
{
    CUdeviceptr brief;

    add(block);
    MUST(cuMemAllocAsync(&brief, LEAST_BYTES, stream));
    for (int i = 0; i < 4; i++) {
        launch(add_kernel, brief, SOME_WORDS);
        if (mode->unknown) {
            MUST(cuGraphUpload(graph, stream));
        }
    }
    if (mode->unnamed) {
        for (int i = 6; i < BLOCKS; i += 6) {
            add_unnamed((block + i) % BLOCKS);
        }
    }
    MUST(cuMemFreeAsync(brief, stream));
}

static void step(const struct mode *mode)
{
    for (int i = 0; i < BLOCKS; i++) {
        visit(mode, i * mode->stride % BLOCKS);
    }
    for (int i = BLOCKS - 1; i >= 0; i--) {
        visit(mode, i * mode->stride % BLOCKS);
    }
    MUST(cuStreamSynchronize(stream));
}

static void check(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        size_t count = bytes_of(i) / 4, wrong = count_wrong(blocks[i], count, expected[i]);

        if (wrong > 0) {
            printf("block %d: %zu of %zu words wrong\n", i, wrong, count);
            status = 1;
        }
    }
}

static void print_counters(void)
{
    enum { MOST = 256 };
    const char *(*name_of)(size_t) = NULL;
    int (*read)(int, uint64_t *, size_t) = NULL;
    uint64_t values[MOST];

    *(void **)&name_of = dlsym(RTLD_DEFAULT, "spillway_counter_name");
    *(void **)&read = dlsym(RTLD_DEFAULT, "spillway_counters");
    if (name_of == NULL || read == NULL || read(0, values, MOST) != 0) {
        return;
    }
    for (size_t i = 0; i < MOST && name_of(i) != NULL; i++) {
        printf("%s %" PRIu64 "\n", name_of(i), values[i]);
    }
}

static void finish(void)
{
    check();
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemFreeAsync(blocks[i], stream));
    }
    MUST(cuMemFree(table));
    trim_pool();
}

static bool take_steps(const char *name, int steps)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(name, modes[i].name) == 0) {
            if (modes[i].instead != NULL) {
                modes[i].instead();
                return true;
            }
            for (int k = 0; k < steps; k++) {
                step(&modes[i]);
            }
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[1]) : 0;

    if (steps < 1) {
        fputs("usage: periodic STEPS MODE...\n", stderr);
        return 2;
    }
    start();
    for (int i = 2; i < argc; i++) {
        if (!take_steps(argv[i], steps)) {
            fprintf(stderr, "periodic: %s is no mode\n", argv[i]);
            return 2;
        }
    }
    finish();
    return status;
}
