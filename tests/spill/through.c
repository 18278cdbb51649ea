/* Runs kernels that write through addresses that are not among their arguments, while the memory
 * is moved: one thread launches them, and another one repeatedly needs room.
 *
 *     through none      the address is written to memory by memsets, which are not inspected
 *     through name      as none, but the kernel's name says that it reads addresses from memory
 *     through copy      the address is copied from the host for each launch
 *     through once      it is copied once, after memory was short
 *     through copied    as once, then copied from there to the place that the kernel reads
 *     through rows      as once, as rows of an array
 *     through batch     as once, by several copies in one call
 *     through global    it is copied to a global variable of a module
 *     through pinned    it is in page-locked memory
 *     through managed   it is in managed memory
 *     through map       there is no address: the kernel gets a tensor map
 *
 * Made for a device of 64 MiB. Prints its findings; exit status 0 when all content is right. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, BLOCKS = 14, BYTES = 3 * MIB + 512, WORDS = BYTES / 4 };
enum { HOTS = 4, HOT_BYTES = 8 * MIB, ROUNDS = 12, AGE = 80 };

static CUcontext context;
static CUfunction through_kernel, named_kernel, map_kernel;
static CUstream stream, main_stream;
static CUdeviceptr blocks[BLOCKS], tables[BLOCKS], sources[BLOCKS];
static uint32_t expected[BLOCKS];

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult must = (call);                                                                    \
                                                                                                   \
        if (must != CUDA_SUCCESS) {                                                                \
            printf("line %d: %s = %d\n", __LINE__, #call, (int)must);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void start(void)
{
    CUmodule module;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&through_kernel, module, "spw_add_through"));
    MUST(cuModuleGetFunction(&named_kernel, module, "spw_add_through_GemmGrouped"));
    MUST(cuModuleGetFunction(&map_kernel, module, "spw_add_by_map"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAllocAsync(&blocks[i], BYTES, stream));
        MUST(cuMemsetD32Async(blocks[i], (unsigned)i * 1000, WORDS, stream));
        expected[i] = (uint32_t)i * 1000;
    }
    MUST(cuStreamSynchronize(stream));
}

static void finish(void)
{
    uint32_t *words = malloc(BYTES);
    int wrong = 0;

    MUST(cuCtxSynchronize());
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemcpyDtoH(words, blocks[i], BYTES));
        for (int w = 0; w < WORDS; w++) {
            wrong += words[w] != expected[i];
        }
        MUST(cuMemFreeAsync(blocks[i], stream));
    }
    free(words);
    printf("%d words wrong\n", wrong);
    exit(wrong > 0);
}

static void add(CUfunction kernel, void *first, int block)
{
    size_t words = WORDS;
    uint32_t one = 1;
    void *params[] = {first, &words, &one};

    MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
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

static void copy_all(void)
{
    new_tables();
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemcpyHtoD(tables[i], &blocks[i], sizeof(blocks[i])));
    }
    MUST(cuCtxSynchronize());
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

static void rows_all(void)
{
    new_tables();
    for (int i = 0; i < BLOCKS; i++) {
        const CUdeviceptr pairs[2][4] = {{0, blocks[i]}, {0, blocks[i]}};
        const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                    .srcHost = pairs,
                                    .srcPitch = sizeof(pairs[0]),
                                    .srcXInBytes = 8,
                                    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .dstDevice = tables[i],
                                    .dstPitch = 512,
                                    .WidthInBytes = 16,
                                    .Height = 2};

        MUST(cuMemcpy2D(&copy));
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

static void by_map(int block)
{
    const cuuint64_t dims[] = {WORDS}, strides[] = {BYTES};
    const cuuint32_t box[] = {32}, steps[] = {1};
    CUtensorMap map;

    MUST(cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 1, (void *)(uintptr_t)blocks[block], dims, strides,
        box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
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
        /* The other blocks may move, if spillway knows which they are. */
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

/* Makes sure that the other thread makes progress on a busy machine. */
static void await_turn(void)
{
    int before = atomic_load(&turns);

    while (atomic_load(&turns) == before) {
        usleep(100);
    }
}

/* Uses that age the other blocks. */
static void let_age(CUdeviceptr hot)
{
    for (int i = 0; i < AGE; i++) {
        MUST(cuMemsetD32Async(hot, 0xaaaaaaaa, 1, main_stream));
    }
}

/* Allocates more than the device has, so that blocks go to the host, and frees it: they come
 * back. */
static void need_room(void)
{
    static unsigned seed = 1;
    CUdeviceptr hot[HOTS];

    for (int i = 0; i < HOTS; i++) {
        /* Sizes never repeat, so the moves cannot be predicted. */
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
        await_turn();
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
                {"name", new_tables, by_name},
                {"copy", new_tables, by_copy},
                {"once", copy_all, as_is},
                {"copied", new_tables, by_copy_of_copy},
                {"rows", rows_all, as_is},
                {"batch", batch_all, as_is},
                {"global", new_global, by_copy},
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
