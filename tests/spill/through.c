/* Kernels that write through pointers that are not among their arguments, while the memory
 * migrates: one thread launches them, another one allocates again and again.
 *
 *     through none      the address is written to memory by memsets, which nobody looks at
 *     through kernel    it is copied by another kernel
 *     through name      the same as none, but the kernel's name says that it finds addresses
 *     through copy      the address is copied from the host, for each launch
 *     through once      the same, but once, when memory was short before
 *     through graph     the same, after the graphs were made whose kernels find it
 *     through copied    the same as once, and from there to where the kernel finds it
 *     through rows      the same as once, as rows of an array
 *     through batch     the same, several copies in one call
 *     through global    it is copied to a global of a module
 *     through graph-global    the same, after the graphs were made
 *     through pinned    it is in page-locked memory
 *     through managed   it is in managed memory
 *     through map       there is none: the kernel is given a tensor map
 *
 * Made for a device of 64 MiB. Exit 0 when all content is right; it prints what it found. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { BLOCKS = 14, BYTES = 3 * MIB + 512, WORDS = BYTES / 4 };
enum { HOTS = 4, HOT_BYTES = 8 * MIB, ROUNDS = 12, AGE = 80 };

static CUcontext context;
static CUfunction through_kernel, named_kernel, map_kernel, copy_kernel;
static CUstream stream, main_stream;
static CUdeviceptr blocks[BLOCKS], tables[BLOCKS], sources[BLOCKS];
static uint32_t expected[BLOCKS];

static void start(void)
{
    CUmodule module;

    context = enter_device(0, &module);
    MUST(cuModuleGetFunction(&through_kernel, module, "spw_add_through"));
    MUST(cuModuleGetFunction(&named_kernel, module, "spw_add_through_GemmGrouped"));
    MUST(cuModuleGetFunction(&map_kernel, module, "spw_add_by_map"));
    MUST(cuModuleGetFunction(&copy_kernel, module, "spw_copy"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < BLOCKS; i++) {
        expected[i] = new_block(&blocks[i], i, WORDS, stream);
    }
    MUST(cuStreamSynchronize(stream));
}

static void finish(void)
{
    size_t wrong = 0;

    MUST(cuCtxSynchronize());
    for (int i = 0; i < BLOCKS; i++) {
        wrong += count_wrong(blocks[i], WORDS, expected[i]);
        MUST(cuMemFreeAsync(blocks[i], stream));
    }
    printf("%zu words wrong\n", wrong);
    exit(wrong > 0);
}

static void add(CUfunction kernel, void *first, int block)
{
    launch_add(kernel, first, WORDS, stream);
    expected[block]++;
}

/* ---- how a kernel gets its address ---- */

static void new_tables(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAllocAsync(&tables[i], 4096, stream));
        MUST(cuMemAllocAsync(&sources[i], 4096, stream));
    }
}

static void write_by_memset(int block)
{
    MUST(cuMemsetD32Async(tables[block], (unsigned)blocks[block], 1, stream));
    MUST(cuMemsetD32Async(tables[block] + 4, (unsigned)(blocks[block] >> 32), 1, stream));
}

static void by_memset(int block)
{
    write_by_memset(block);
    add(through_kernel, &tables[block], block);
}

/* Source and table of a block stay as they are between launches, but for this kernel. */
static void by_kernel(int block)
{
    size_t words = sizeof(blocks[block]) / 4;
    void *arguments[] = {&tables[block], &sources[block], &words};

    MUST(cuMemsetD32Async(sources[block], (unsigned)blocks[block], 1, stream));
    MUST(cuMemsetD32Async(sources[block] + 4, (unsigned)(blocks[block] >> 32), 1, stream));
    MUST(cuLaunchKernel(copy_kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    add(through_kernel, &tables[block], block);
}

static void by_name(int block)
{
    write_by_memset(block);
    add(named_kernel, &tables[block], block);
}

static void by_copy(int block)
{
    MUST(cuMemcpyHtoDAsync(tables[block], &blocks[block], sizeof(blocks[block]), stream));
    add(through_kernel, &tables[block], block);
}

static void fill_tables(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemcpyHtoD(tables[i], &blocks[i], sizeof(blocks[i])));
    }
    MUST(cuCtxSynchronize());
}

static void copy_all(void)
{
    new_tables();
    fill_tables();
}

static CUgraphExec graphs[BLOCKS];

static void make_graphs(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        CUgraph graph;

        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        launch_add(through_kernel, &tables[i], WORDS, stream);
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphInstantiate(&graphs[i], graph, 0));
        MUST(cuGraphDestroy(graph));
    }
    fill_tables();
}

static void new_graphs(void)
{
    new_tables();
    make_graphs();
}

static void by_graph(int block)
{
    MUST(cuGraphLaunch(graphs[block], stream));
    expected[block]++;
}

static void as_is(int block)
{
    add(through_kernel, &tables[block], block);
}

static void by_copy_of_copy(int block)
{
    MUST(cuMemcpyHtoDAsync(sources[block] + 64, &blocks[block], sizeof(blocks[block]), stream));
    MUST(cuMemcpyDtoDAsync(tables[block], sources[block] + 64, 64, stream));
    add(through_kernel, &tables[block], block);
}

/* Of two rows, which are far apart on the host, the second one has the address. */
static void rows_all(void)
{
    enum { PITCH = 512, FAR = 1 << 21 };

    new_tables();
    for (int i = 0; i < BLOCKS; i++) {
        static CUdeviceptr rows[2][FAR];
        const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                    .srcHost = rows,
                                    .srcPitch = sizeof(rows[0]),
                                    .srcXInBytes = sizeof(rows[0][0]),
                                    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .dstDevice = tables[i],
                                    .dstPitch = PITCH,
                                    .WidthInBytes = 2 * sizeof(rows[0][0]),
                                    .Height = 2};

        rows[1][1] = blocks[i];
        MUST(cuMemcpy2D(&copy));
        tables[i] += PITCH;
    }
    MUST(cuCtxSynchronize());
}

static void batch_all(void)
{
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUdeviceptr from[BLOCKS];
    size_t bytes[BLOCKS], index = 0;

    new_tables();
    for (int i = 0; i < BLOCKS; i++) {
        from[i] = (CUdeviceptr)(uintptr_t)&blocks[i];
        bytes[i] = sizeof(blocks[i]);
    }
    MUST(cuMemcpyBatchAsync(tables, from, bytes, BLOCKS, &attributes, &index, 1, stream));
}

static void new_global(void)
{
    static const char ptx[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                              ".visible .global .align 8 .b64 table[14];\n";
    CUdeviceptr memory;
    CUmodule module;
    size_t bytes;

    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetGlobal(&memory, &bytes, module, "table"));
    for (int i = 0; i < BLOCKS; i++) {
        tables[i] = memory + (CUdeviceptr)i * sizeof(blocks[0]);
    }
}

static void new_graphs_of_global(void)
{
    new_global();
    make_graphs();
}

static void new_pinned(void)
{
    void *host;

    MUST(cuMemHostAlloc(&host, sizeof(blocks), 0));
    memcpy(host, blocks, sizeof(blocks));
    for (int i = 0; i < BLOCKS; i++) {
        tables[i] = (CUdeviceptr)(uintptr_t)host + (CUdeviceptr)i * sizeof(blocks[0]);
    }
}

static void new_managed(void)
{
    CUdeviceptr memory;

    MUST(cuMemAllocManaged(&memory, sizeof(blocks), CU_MEM_ATTACH_GLOBAL));
    /* Memory of the host as well, so no call is needed. */
    memcpy((void *)(uintptr_t)memory, blocks, sizeof(blocks));
    for (int i = 0; i < BLOCKS; i++) {
        tables[i] = memory + (CUdeviceptr)i * sizeof(blocks[0]);
    }
}

/* By each function that makes a tensor map, in turn. */
static void describe(CUtensorMap *ret_map, int block)
{
    static const cuuint64_t dims[] = {WORDS, 1, 1}, strides[] = {BYTES, BYTES};
    static const cuuint32_t steps[] = {1, 1, 1};
    static const int corner[] = {0};
    static _Atomic unsigned int turn;
    void *address = (void *)(uintptr_t)blocks[block];

    switch (turn++ % 4) {
    case 0:
        describe_block(ret_map, blocks[block], WORDS);
        break;
    case 1:
        MUST(cuTensorMapEncodeIm2col(
            ret_map, CU_TENSOR_MAP_DATA_TYPE_INT32, 3, address, dims, strides, corner, corner, 1, 1,
            steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        break;
    case 2:
        MUST(cuTensorMapEncodeIm2colWide(
            ret_map, CU_TENSOR_MAP_DATA_TYPE_INT32, 3, address, dims, strides, 0, 0, 1, 1, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapIm2ColWideMode)0, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        break;
    default:
        describe_block(ret_map, blocks[BLOCKS - 1], WORDS);
        MUST(cuTensorMapReplaceAddress(ret_map, address));
        break;
    }
}

static void by_map(int block)
{
    CUtensorMap map;

    describe(&map, block);
    add(map_kernel, &map, block);
}

static void nothing(void)
{
}

static _Atomic bool stop;
static _Atomic int turns;

static void *submit(void *cookie)
{
    void (*const *write)(int block) = cookie;

    MUST(cuCtxSetCurrent(context));
    for (int turn = 1; !atomic_load(&stop); turn++) {
        /* The other blocks may migrate, if spillway can tell them apart. */
        for (int i = 0; i < BLOCKS; i += 2) {
            (*write)(i);
        }
        if (turn % 4 == 0) {
            MUST(cuStreamSynchronize(stream));
        }
        atomic_fetch_add(&turns, 1);
    }
    return NULL;
}

/* Uses that make old what else is there. */
static void let_age(CUdeviceptr hot)
{
    for (int i = 0; i < AGE; i++) {
        MUST(cuMemsetD32Async(hot, 0xaaaaaaaa, 1, main_stream));
    }
}

/* Takes what the device has not got, so that blocks go to the host, and gives it back: they come
 * again. */
static void need_room(void)
{
    static unsigned seed = 1;
    CUdeviceptr hot[HOTS];

    for (int i = 0; i < HOTS; i++) {
        /* Another size each time, so that nothing is predicted. */
        size_t bytes = HOT_BYTES + (size_t)(rand_r(&seed) % 8) * MIB / 2;

        MUST(cuMemAllocAsync(&hot[i], bytes, main_stream));
        MUST(cuMemsetD8Async(hot[i], 0xaa, bytes, main_stream));
        let_age(hot[i]);
    }
    for (int i = 0; i < HOTS; i++) {
        MUST(cuMemFreeAsync(hot[i], main_stream));
    }
    MUST(cuStreamSynchronize(main_stream));
}

static void run(void (*prepare)(void), void (*write)(int block))
{
    pthread_t thread;

    need_room();
    prepare();
    pthread_create(&thread, NULL, submit, &write);
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(&turns);
        need_room();
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*prepare)(void);
        void (*write)(int block);
    } ways[] = {{"none", new_tables, by_memset},
                {"kernel", new_tables, by_kernel},
                {"name", new_tables, by_name},
                {"copy", new_tables, by_copy},
                {"once", copy_all, as_is},
                {"copied", new_tables, by_copy_of_copy},
                {"graph", new_graphs, by_graph},
                {"rows", rows_all, as_is},
                {"batch", batch_all, as_is},
                {"global", new_global, by_copy},
                {"graph-global", new_graphs_of_global, by_graph},
                {"pinned", new_pinned, as_is},
                {"managed", new_managed, as_is},
                {"map", nothing, by_map}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (argc == 2 && strcmp(argv[1], ways[i].name) == 0) {
            start();
            run(ways[i].prepare, ways[i].write);
            finish();
        }
    }
    fprintf(stderr, "usage: through WAY\n");
    return 2;
}
