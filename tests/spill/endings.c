/* Memory, streams, threads and contexts that end while other work goes on, or that nobody asked
 * about before.
 *
 *     endings CASE      see the table at the end
 *
 * Prints what came out, which is the same without spillway but for `capture` and `graph`, which
 * need more memory than there is, and exits with 0 if every call succeeded. */
#include "common.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { BYTES = 8 * MIB };

static CUcontext contexts[2];
static uint32_t *flag;      /* work waits until it is 1 */
static unsigned char *host; /* BYTES of it */

static void retain(int devices)
{
    MUST(cuInit(0));
    for (int i = 0; i < devices; i++) {
        MUST(cuDevicePrimaryCtxRetain(&contexts[i], i));
    }
    MUST(cuCtxSetCurrent(contexts[0]));
}

static void prepare(int devices)
{
    retain(devices);
    MUST(cuMemHostAlloc((void **)&flag, sizeof(*flag), CU_MEMHOSTALLOC_PORTABLE));
    MUST(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_PORTABLE));
    *flag = 0;
}

/* Memory of device 0 is for device 1 too. */
static void share_pool(void)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;

    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolSetAccess(pool, &access, 1));
}

static void filled(CUdeviceptr *ret_block, unsigned char byte, CUstream stream)
{
    MUST(cuMemAllocAsync(ret_block, BYTES, stream));
    MUST(cuMemsetD8Async(*ret_block, byte, BYTES, stream));
    MUST(cuStreamSynchronize(stream));
}

static void let_go(void)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void print_wrong(void)
{
    size_t wrong = 0;

    for (size_t i = 0; i < BYTES; i++) {
        wrong += host[i] != 7;
    }
    printf("%zu bytes wrong\n", wrong);
}

/* ---- cases ---- */

/* A block of a context's memory pool outlives the context, where another one was only retained. */
static void other_context(void)
{
    CUcontext own;
    CUstream stream, side;
    CUdeviceptr block;
    unsigned char byte = 0;

    retain(1);
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuCtxCreate(&own, NULL, 0, 0));
    MUST(cuStreamCreate(&side, 0));
    filled(&block, 3, side);
    MUST(cuCtxDestroy(own));
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuMemcpyDtoH(&byte, block, 1));
    MUST(cuMemFreeAsync(block, stream));
    printf("byte %d\n", byte);
}

/* The driver refuses to destroy a primary context: its memory stays. */
static void refused_end(void)
{
    CUdeviceptr block;
    unsigned char byte = 0;

    retain(1);
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuMemsetD8(block, 3, BYTES));
    printf("%s, ", cuCtxDestroy(contexts[0]) == CUDA_SUCCESS ? "destroyed" : "refused");
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuMemcpyDtoH(&byte, block, 1));
    MUST(cuMemFree(block));
    printf("byte %d\n", byte);
}

/* The functions of a program that is compiled for a default stream of each thread. */
extern CUresult cuMemAllocAsync_ptsz(CUdeviceptr *, size_t, CUstream);
extern CUresult cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
extern CUresult cuMemsetD8Async_ptsz(CUdeviceptr, unsigned char, size_t, CUstream);
extern CUresult cuMemcpyDtoHAsync_v2_ptsz(void *, CUdeviceptr, size_t, CUstream);
extern CUresult cuStreamSynchronize_ptsz(CUstream);
extern CUresult cuStreamWaitValue32_v2_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);

static void *use_and_free(void *unused)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuMemAllocAsync_ptsz(&block, BYTES, NULL));
    MUST(cuMemsetD8Async_ptsz(block, 7, BYTES, NULL));
    MUST(cuStreamSynchronize_ptsz(NULL));
    MUST(cuStreamWaitValue32_v2_ptsz(NULL, (CUdeviceptr)(uintptr_t)flag, 1,
                                     CU_STREAM_WAIT_VALUE_EQ));
    MUST(cuMemcpyDtoHAsync_v2_ptsz(host, block, BYTES, NULL));
    MUST(cuMemFreeAsync_ptsz(block, NULL));
    return unused;
}

static void *overwrite(void *stream)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(contexts[0]));
    filled(&block, 1, stream);
    return NULL;
}

/* A thread frees memory on its own stream and ends. The next thread has the same pthread_t. */
static void thread(void)
{
    CUstream stream;
    CUdeviceptr rest;
    pthread_t first, second;

    prepare(1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&rest, 44 * MIB)); /* so that freed memory is used again */
    pthread_create(&first, NULL, use_and_free, NULL);
    pthread_join(first, NULL);
    pthread_create(&second, NULL, overwrite, stream);
    pthread_join(second, NULL);
    let_go();
    MUST(cuCtxSynchronize());
    print_wrong();
}

static void wait_for(const uint32_t *value, CUstream stream)
{
    MUST(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)value, 1, CU_STREAM_WAIT_VALUE_EQ));
}

/* Work waits for the flag, reads a block and frees it. */
static void read_and_free(CUdeviceptr block, CUstream stream)
{
    *flag = 0;
    wait_for(flag, stream);
    MUST(cuMemcpyDtoHAsync(host, block, BYTES, stream));
    MUST(cuMemFreeAsync(block, stream));
}

/* The same on a stream of the current context. */
static CUstream read_and_free_aside(CUdeviceptr block)
{
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    read_and_free(block, stream);
    return stream;
}

/* Work of device 1 uses memory of device 0 and frees it; then the program waits for device 0. */
static void peer_free(void)
{
    CUstream stream, side;
    CUdeviceptr block, other;

    prepare(2);
    share_pool();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    filled(&block, 7, stream);
    MUST(cuCtxSetCurrent(contexts[1]));
    side = read_and_free_aside(block);
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuCtxSynchronize());
    filled(&other, 1, stream);
    let_go();
    MUST(cuStreamSynchronize(side));
    print_wrong();
}

/* Work of a context frees memory; then the program waits for another context of the device. */
static void context_free(void)
{
    CUstream stream, side;
    CUdeviceptr block, other;

    prepare(1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    filled(&block, 7, stream);
    side = read_and_free_aside(block);
    MUST(cuCtxCreate(&contexts[1], NULL, 0, 0));
    MUST(cuCtxSynchronize());
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    filled(&other, 1, stream);
    let_go();
    MUST(cuStreamSynchronize(side));
    print_wrong();
}

/* Of the simulated driver. */
int spillway_sim_fail(const char *list);
unsigned long long spillway_sim_calls(const char *name);

/* A wait that fails says nothing of the work. */
static void refused_wait(void)
{
    CUstream stream, side;
    CUdeviceptr block, other;

    prepare(1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        filled(&block, 7, stream);
        side = read_and_free_aside(block);
        MUST(spillway_sim_fail(i == 0 ? "cuStreamSynchronize:1:999" : "cuCtxSynchronize:1:999"));
        printf("%d, ", (int)(i == 0 ? cuStreamSynchronize(side) : cuCtxSynchronize()));
        MUST(spillway_sim_fail(NULL));
        filled(&other, 1, stream);
        let_go();
        MUST(cuStreamSynchronize(side));
        print_wrong();
    }
}

/* A stream ends before its work. */
static void ended_stream(void)
{
    CUstream stream, side;
    CUdeviceptr block, other;

    prepare(1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    filled(&block, 7, stream);
    side = read_and_free_aside(block);
    MUST(cuStreamDestroy(side));
    filled(&other, 1, stream);
    let_go();
    MUST(cuCtxSynchronize());
    print_wrong();
}

static void *await_stream(void *stream)
{
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuStreamSynchronize(stream));
    return NULL;
}

static void *await_context(void *unused)
{
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuCtxSynchronize());
    return unused;
}

/* A thread waits, for the stream or the context; meanwhile memory is freed by work that it does not
 * wait for. */
static void free_meanwhile(void *(*await)(void *), const char *call)
{
    unsigned long long calls;
    struct timespec end;
    CUstream stream, side;
    CUdeviceptr block, other;
    uint32_t *early;
    pthread_t thread;

    MUST(cuMemHostAlloc((void **)&early, sizeof(*early), CU_MEMHOSTALLOC_PORTABLE));
    *early = 0;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    filled(&block, 7, stream);
    wait_for(early, side);
    calls = spillway_sim_calls(call);
    pthread_create(&thread, NULL, await, side);
    while (spillway_sim_calls(call) == calls) {
        (void)usleep(1000);
    }
    (void)usleep(20000); /* until it waits */
    read_and_free(block, side);
    __atomic_store_n(early, 1, __ATOMIC_RELEASE);
    end = (struct timespec){.tv_sec = time(NULL) + 10};
    if (pthread_timedjoin_np(thread, NULL, &end) != 0) {
        let_go(); /* it was so late that it waits for all of the work */
        pthread_join(thread, NULL);
    }
    filled(&other, 1, stream);
    let_go();
    MUST(cuStreamSynchronize(side));
    print_wrong();
}

static void late_free(void)
{
    prepare(1);
    free_meanwhile(await_stream, "cuStreamSynchronize");
    free_meanwhile(await_context, "cuCtxSynchronize");
}

/* A kernel of the current device uses memory of device 0. */
static void launch(CUdeviceptr block)
{
    CUmodule module;
    CUfunction kernel;
    CUstream stream;

    MUST(cuStreamCreate(&stream, 0));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&kernel, module, "spw_add"));
    launch_add(kernel, &block, 1024, stream);
    puts(cuStreamSynchronize(stream) == CUDA_SUCCESS ? "reached" : "refused");
}

/* Device 1 has the right by the memory pool, and peer access that is taken away again. */
static void pool_right(void)
{
    CUdeviceptr block;

    retain(2);
    share_pool();
    MUST(cuMemAllocAsync(&block, MIB, NULL));
    MUST(cuStreamSynchronize(NULL));
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuCtxEnablePeerAccess(contexts[0], 0));
    MUST(cuCtxDisablePeerAccess(contexts[0]));
    launch(block);
}

/* Two contexts of device 1 have peer access, one of them no longer. */
static void peer_right(void)
{
    CUdeviceptr block;
    CUcontext other;

    retain(2);
    MUST(cuMemAlloc(&block, MIB));
    MUST(cuCtxCreate(&other, NULL, 0, 1));
    MUST(cuCtxEnablePeerAccess(contexts[0], 0));
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuCtxEnablePeerAccess(contexts[0], 0));
    MUST(cuCtxDisablePeerAccess(contexts[0]));
    MUST(cuCtxSetCurrent(other));
    launch(block);
}

/* Peer access is taken away again. */
static void lost_right(void)
{
    CUdeviceptr block;

    retain(2);
    MUST(cuMemAlloc(&block, MIB));
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuCtxEnablePeerAccess(contexts[0], 0));
    MUST(cuCtxDisablePeerAccess(contexts[0]));
    launch(block);
}

/* Peer access ends with the context that had it, and the pool's right stays. */
static void ended_right(void)
{
    CUdeviceptr block;
    CUcontext other;

    retain(2);
    MUST(cuMemAllocAsync(&block, MIB, NULL));
    MUST(cuStreamSynchronize(NULL));
    MUST(cuCtxCreate(&other, NULL, 0, 1));
    MUST(cuCtxEnablePeerAccess(contexts[0], 0));
    MUST(cuCtxDestroy(other));
    share_pool();
    MUST(cuCtxSetCurrent(contexts[1]));
    launch(block);
}

/* Deprecated, and in use. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* A context ends when nothing is attached to it any more, and its memory with it. */
static void detach(void)
{
    enum { ROUNDS = 6 };
    CUcontext context, again;
    CUdeviceptr block;

    MUST(cuInit(0));
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuCtxCreate(&context, NULL, 0, 0));
        MUST(cuMemAlloc(&block, 40 * MIB));
        MUST(cuCtxAttach(&again, 0));
        MUST(cuCtxDetach(again));
        MUST(cuMemsetD8(block, 1, 40 * MIB));
        MUST(cuCtxDetach(context));
    }
    printf("%d rounds\n", ROUNDS);
}

/* Page-locked memory ends with its context. */
static void pinned(void)
{
    CUcontext context;
    CUdeviceptr block;
    void *memory;

    MUST(cuInit(0));
    for (int i = 0; i < 3; i++) {
        MUST(cuCtxCreate(&context, NULL, 0, 0));
        MUST(cuMemHostAlloc(&memory, 32 * MIB, 0));
        MUST(cuMemAlloc(&block, MIB));
        MUST(cuCtxDestroy(context));
    }
}

/* Overfills the device, so that arguments of kernels are read, and launches a kernel before and
 * after code that it has nothing to do with is unloaded. */
static void unload(bool library)
{
    CUdeviceptr block = 0;
    CUfunction kernel;
    CUlibrary other;
    CUmodule module;

    enter_device(0, &module);
    MUST(cuModuleGetFunction(&kernel, module, "spw_add"));
    for (int i = 0; i < 12; i++) {
        MUST(cuMemAllocAsync(&block, BYTES, NULL));
        MUST(cuMemsetD32Async(block, 5, BYTES / 4, NULL));
    }
    for (int i = 0; i < 2; i++) {
        launch_add(kernel, &block, BYTES / 4, NULL);
        launch_add(kernel, &block, BYTES / 4, NULL);
        if (library) {
            MUST(cuLibraryLoadData(&other, "any image", NULL, NULL, 0, NULL, NULL, 0));
            MUST(cuLibraryUnload(other));
        }
    }
    printf("%zu words wrong\n", count_wrong(block, BYTES / 4, 9));
}

static void library(void)
{
    unload(true);
}

static void no_library(void)
{
    unload(false);
}

/* A capture was not ended when its primary context went. More memory is wanted than there is. */
static void capture(void)
{
    enum { MOST = 9 };
    CUdeviceptr block;
    CUstream stream;
    int count = 0;

    retain(1);
    MUST(cuMemAlloc(&block, MIB));
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuDevicePrimaryCtxRelease(0));
    retain(1);
    while (count < MOST && cuMemAlloc(&block, 16 * MIB) == CUDA_SUCCESS) {
        MUST(cuMemsetD8(block, 1, 16 * MIB));
        count++;
    }
    printf("%d blocks\n", count);
}

static CUgraphExec graph_that_fills(CUdeviceptr block, size_t bytes, CUstream stream)
{
    CUgraph graph;
    CUgraphExec executable;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemsetD8Async(block, 5, bytes, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&executable, graph, 0));
    MUST(cuGraphDestroy(graph));
    return executable;
}

/* A graph ends whose block ended before it. Another block lies there, which another graph fills. */
static void graph(void)
{
    enum { OTHERS = 7, OTHER_BYTES = 7 * MIB };
    CUdeviceptr before, named, block, other;
    CUgraphExec ending, staying;
    CUstream stream;

    retain(1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&before, BYTES));
    MUST(cuMemAlloc(&named, BYTES));
    ending = graph_that_fills(named, BYTES, stream);
    MUST(cuMemFree(before));
    MUST(cuMemFree(named));
    MUST(cuCtxSynchronize());
    MUST(cuMemAlloc(&block, 2 * BYTES));
    staying = graph_that_fills(block, 2 * BYTES, stream);
    MUST(cuGraphExecDestroy(ending));
    for (int i = 0; i < OTHERS; i++) {
        MUST(cuMemAlloc(&other, OTHER_BYTES));
        MUST(cuMemsetD8(other, 1, OTHER_BYTES));
    }
    MUST(cuGraphLaunch(staying, stream));
    MUST(cuStreamSynchronize(stream));
    printf("%s, %zu words wrong\n",
           block < named && named < block + 2 * BYTES ? "over it" : "elsewhere",
           count_wrong(block, BYTES / 2, 0x05050505));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"other-context", other_context},
             {"refused-end", refused_end},
             {"thread", thread},
             {"peer-free", peer_free},
             {"context-free", context_free},
             {"refused-wait", refused_wait},
             {"ended-stream", ended_stream},
             {"late-free", late_free},
             {"lost-right", lost_right},
             {"pool-right", pool_right},
             {"peer-right", peer_right},
             {"ended-right", ended_right},
             {"detach", detach},
             {"pinned", pinned},
             {"library", library},
             {"no-library", no_library},
             {"capture", capture},
             {"graph", graph}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return 2;
}
