/* Programs that use memory while it migrates, or that hang unless a migration gives up.
 *
 *     moves writes      kernels increment cold blocks while others are allocated
 *     moves threads     the same from two threads
 *     moves spin        a kernel runs until a later submission lets it go
 *     moves wait        the same by cuStreamWaitValue32
 *     moves callback    a host function waits for a mutex that a thread at the barrier holds
 *     moves copy        a thread is inside a blocking copy
 *     moves capture     a graph uses its memory again and again
 *     moves registered  cold blocks are about to be registered with a network card
 *     moves told        most are, in every way, with the libraries of the folder SPW_TEST_FOLDER
 *     moves told-next   the same, each in the next way: every other block has no granule of its own
 *     moves pin         cold blocks are pinned by the public interface
 *     moves unpin       and let go again
 *     moves priority    half of them, the oldest, have a higher priority
 *     moves peer        kernels of a second device increment cold blocks of the first
 *     moves peer-spin   one of them runs until a later submission lets it go
 *     moves pointers    pointer attributes of blocks that are on the host
 *     moves first       memory is freed behind a kernel that runs until a later submission
 *     moves impossible  requests that no migration can make room for
 *     moves faults      the first, shorter, and an allocation may find no memory
 *
 * `threads` takes 30 rounds, or as many as a further argument says. Made for a device of 64 MiB.
 * Exit 0 when all content is right; it prints what it found. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/register_api.h"
#include "common.h"

enum { COLD = 14, COLD_BYTES = 3 * MIB + 512, COLD_WORDS = COLD_BYTES / 4 };
enum { ROUNDS = 30, AGE = 80, HOT_BYTES = 9 * MIB };

static CUcontext context;
static CUfunction add_kernel, spin_kernel;
static CUstream main_stream, side_stream;
static CUdeviceptr cold[COLD];
static uint32_t expected[COLD];
static bool may_fail;
static int thread_rounds = ROUNDS;
static int status;

static void add_by(CUfunction kernel, CUstream stream, int block)
{
    launch_add(kernel, &cold[block], COLD_WORDS, stream);
    expected[block]++;
}

static void add(CUstream stream, int block)
{
    add_by(add_kernel, stream, block);
}

static void spin_by(CUfunction kernel, CUstream stream, const uint32_t *flag)
{
    void *params[] = {&flag};

    MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void spin(CUstream stream, const uint32_t *flag)
{
    spin_by(spin_kernel, stream, flag);
}

/* Leaves 0 when there is no memory and the mode allows that. */
static void allocate(CUdeviceptr *address, size_t bytes)
{
    CUresult result = cuMemAllocAsync(address, bytes, main_stream);

    if (result != CUDA_ERROR_OUT_OF_MEMORY || !may_fail) {
        MUST(result);
    }
}

/* Frees, which make the live blocks old. */
static void let_age(void)
{
    for (int i = 0; i < AGE; i++) {
        CUdeviceptr address = 0;

        allocate(&address, 512);
        if (address != 0) {
            MUST(cuMemFreeAsync(address, main_stream));
        }
    }
}

static void start(void)
{
    CUmodule module;

    context = enter_device(0, &module);
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuModuleGetFunction(&spin_kernel, module, "spw_spin"));
    MUST(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side_stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < COLD; i++) {
        expected[i] = new_block(&cold[i], i, COLD_WORDS, main_stream);
    }
    MUST(cuStreamSynchronize(main_stream));
    let_age();
}

/* One that needs room; it is written to, and so shows if it lies where it must not. */
static CUdeviceptr new_hot(void)
{
    CUdeviceptr address = 0;

    allocate(&address, HOT_BYTES);
    if (address != 0) {
        MUST(cuMemsetD8Async(address, 0xaa, HOT_BYTES, main_stream));
    }
    return address;
}

static void check(void)
{
    MUST(cuCtxSynchronize());
    for (int i = 0; i < COLD; i++) {
        size_t wrong = count_wrong(cold[i], COLD_WORDS, expected[i]);

        if (wrong > 0) {
            printf("block %d: %zu of %d words wrong, expected %u\n", i, wrong, COLD_WORDS,
                   expected[i]);
            status = 1;
        }
    }
}

static void finish(void)
{
    check();
    for (int i = 0; i < COLD; i++) {
        MUST(cuMemFreeAsync(cold[i], main_stream));
    }
    /* Twice: a call that failed once must succeed when it is repeated. */
    for (int i = 0; i < 2; i++) {
        trim_pool();
    }
}

/* ---- use while it is moved ---- */

static void write_rounds(int rounds)
{
    CUdeviceptr hot[4] = {0};

    for (int round = 0; round < rounds; round++) {
        CUdeviceptr *slot = &hot[round % 4];

        for (int i = 0; i < COLD; i++) {
            add((i + round) % 2 == 0 ? main_stream : side_stream, i);
        }
        /* In the next round the streams swap their blocks. */
        MUST(cuCtxSynchronize());
        for (int i = 0; i < COLD; i++) {
            add((i + round) % 2 == 0 ? side_stream : main_stream, i);
        }
        if (*slot != 0) {
            MUST(cuMemFreeAsync(*slot, main_stream));
        }
        *slot = new_hot();
        let_age();
        if (round % 5 == 4) {
            check();
        } else {
            MUST(cuCtxSynchronize());
        }
    }
    for (int i = 0; i < 4; i++) {
        if (hot[i] != 0) {
            MUST(cuMemFreeAsync(hot[i], main_stream));
        }
    }
}

static void writes(void)
{
    write_rounds(ROUNDS);
}

static void with_faults(void)
{
    may_fail = true;
    write_rounds(6);
}

static _Atomic bool stop;
static _Atomic int turns;

/* Submits to its own blocks on its own stream; never waits for the other thread. */
static void *submit(void *cookie)
{
    MUST(cuCtxSetCurrent(context));
    for (int turn = 1; !atomic_load(&stop); turn++) {
        for (int i = 0; i < COLD; i += 2) {
            add(side_stream, i);
        }
        if (turn % 8 == 0) {
            MUST(cuStreamSynchronize(side_stream));
        }
        atomic_fetch_add(&turns, 1);
    }
    return NULL;
}

static void with_threads(void)
{
    CUdeviceptr hot[4] = {0};
    pthread_t thread;

    pthread_create(&thread, NULL, submit, NULL);
    for (int round = 0; round < thread_rounds; round++) {
        CUdeviceptr *slot = &hot[round % 4];

        await_turn(&turns);
        for (int i = 1; i < COLD; i += 2) {
            add(main_stream, i);
        }
        if (*slot != 0) {
            MUST(cuMemFreeAsync(*slot, main_stream));
        }
        *slot = new_hot();
        let_age();
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++) {
        MUST(cuMemFreeAsync(hot[i], main_stream));
    }
}

/* ---- what a move must not wait for ---- */

static uint32_t *new_flag(void)
{
    void *flag;

    MUST(cuMemHostAlloc(&flag, sizeof(uint32_t), 0));
    *(uint32_t *)flag = 0;
    return flag;
}

static void hold_and_allocate(void)
{
    CUdeviceptr hot[3];

    for (int i = 0; i < 3; i++) {
        hot[i] = new_hot();
    }
    puts("allocated");
    for (int i = 0; i < 3; i++) {
        MUST(cuMemFreeAsync(hot[i], main_stream));
    }
}

static void with_spin(void)
{
    uint32_t *flag = new_flag();

    spin(side_stream, flag);
    add(side_stream, 0);
    hold_and_allocate();
    /* The submission that ends the kernel. */
    MUST(cuMemsetD32Async((CUdeviceptr)(uintptr_t)flag, 1, 1, main_stream));
}

static void with_wait(void)
{
    uint32_t *flag = new_flag();

    MUST(
        cuStreamWaitValue32(side_stream, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    add(side_stream, 0);
    hold_and_allocate();
    MUST(cuStreamWriteValue32(main_stream, (CUdeviceptr)(uintptr_t)flag, 1, 0));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool holding, let_go;

static void callback(void *cookie)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

/* Holds the mutex while it submits, and so may wait at the barrier. */
static void *hold(void *cookie)
{
    MUST(cuCtxSetCurrent(context));
    pthread_mutex_lock(&mutex);
    atomic_store(&holding, true);
    while (!atomic_load(&let_go)) {
        add(main_stream, 1);
        usleep(1000);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void with_callback(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, hold, NULL);
    while (!atomic_load(&holding)) {
        usleep(100);
    }
    MUST(cuLaunchHostFunc(side_stream, callback, NULL));
    hold_and_allocate();
    atomic_store(&let_go, true);
    pthread_join(thread, NULL);
}

static _Atomic bool copying;

static void *copy(void *cookie)
{
    static char byte[512];

    MUST(cuCtxSetCurrent(context));
    atomic_store(&copying, true);
    MUST(cuMemcpyDtoHAsync(byte, cold[2], sizeof(byte), side_stream));
    MUST(cuMemcpyDtoH(byte, cold[3], sizeof(byte)));
    return NULL;
}

static void with_copy(void)
{
    uint32_t *flag = new_flag();
    CUstream blocking;
    pthread_t thread;

    /* The legacy stream, on which the copy is, waits for blocking streams. */
    MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    spin(blocking, flag);
    pthread_create(&thread, NULL, copy, NULL);
    while (!atomic_load(&copying)) {
        usleep(100);
    }
    /* Time for the other thread to get inside. */
    usleep(20000);
    hold_and_allocate();
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    MUST(cuStreamDestroy(blocking));
}

static void with_capture(void)
{
    CUdeviceptr hot[3];
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuStreamBeginCapture(side_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    hot[0] = new_hot();
    add(side_stream, 0);
    hot[1] = new_hot();
    MUST(cuStreamEndCapture(side_stream, &graph));
    expected[0]--; /* recorded, not run */
    MUST(cuGraphInstantiate(&exec, graph, 0));
    hot[2] = new_hot();
    for (int i = 0; i < 10; i++) {
        MUST(cuGraphLaunch(exec, side_stream));
        expected[0]++;
    }
    MUST(cuStreamSynchronize(side_stream));
    for (int i = 0; i < 3; i++) {
        MUST(cuMemFreeAsync(hot[i], main_stream));
    }
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* ---- a second device ---- */

static CUcontext peer_context;
static CUfunction peer_add, peer_spin;
static CUstream peer_stream;

static void start_peer(void)
{
    CUmodule module;

    peer_context = enter_device(1, &module);
    MUST(cuModuleGetFunction(&peer_add, module, "spw_add"));
    MUST(cuModuleGetFunction(&peer_spin, module, "spw_spin"));
    MUST(cuStreamCreate(&peer_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxEnablePeerAccess(context, 0));
    MUST(cuCtxSetCurrent(context));
}

/* Every other block is the peer's, the rest are this device's: nobody waits for anybody. */
static void with_peer(void)
{
    CUdeviceptr hot[4] = {0};

    start_peer();
    for (int round = 0; round < ROUNDS; round++) {
        CUdeviceptr *slot = &hot[round % 4];

        MUST(cuCtxSetCurrent(peer_context));
        for (int i = 0; i < COLD; i += 2) {
            add_by(peer_add, peer_stream, i);
        }
        MUST(cuCtxSetCurrent(context));
        for (int i = 1; i < COLD; i += 2) {
            add(main_stream, i);
        }
        if (*slot != 0) {
            MUST(cuMemFreeAsync(*slot, main_stream));
        }
        *slot = new_hot();
        let_age();
    }
    for (int i = 0; i < 4; i++) {
        MUST(cuMemFreeAsync(hot[i], main_stream));
    }
    MUST(cuStreamSynchronize(peer_stream));
}

static void with_peer_spin(void)
{
    uint32_t *flag = new_flag();

    start_peer();
    MUST(cuCtxSetCurrent(peer_context));
    spin_by(peer_spin, peer_stream, flag);
    add_by(peer_add, peer_stream, 0);
    MUST(cuCtxSetCurrent(context));
    hold_and_allocate();
    MUST(cuMemsetD32Async((CUdeviceptr)(uintptr_t)flag, 1, 1, main_stream));
    MUST(cuStreamSynchronize(peer_stream));
}

/* ---- what the program says of its blocks ---- */

static int (*pin)(const void *address, size_t bytes, int on);
static int (*prioritize)(const void *address, size_t bytes, int priority);
static int (*mark_step)(void);

/* Without spillway these functions are not there. */
static void find_interface(void)
{
    *(void **)&pin = dlsym(RTLD_DEFAULT, "spillway_pin");
    *(void **)&prioritize = dlsym(RTLD_DEFAULT, "spillway_priority");
    *(void **)&mark_step = dlsym(RTLD_DEFAULT, "spillway_mark_step");
    if (pin == NULL || prioritize == NULL || mark_step == NULL) {
        puts("no interface");
        exit(1);
    }
}

static const void *pointer(CUdeviceptr address)
{
    return (const void *)(uintptr_t)address;
}

static void expect(int got, CUresult due, int line)
{
    if (got != (int)due) {
        printf("line %d: %d, expected %d\n", line, got, (int)due);
        status = 1;
    }
}

#define EXPECT(got, due) expect(got, due, __LINE__)

static void pin_cold(int on)
{
    for (int i = 0; i < COLD; i++) {
        EXPECT(pin(pointer(cold[i] + MIB), 1, on), CUDA_SUCCESS);
    }
}

static void with_pin(void)
{
    find_interface();
    pin_cold(1);
    hold_and_allocate();
}

static void with_registered(void)
{
    unsigned on = 1;

    for (int i = 0; i < COLD; i++) {
        /* Drivers differ in their answer for mapped memory. */
        if (i % 2 == 0) {
            (void)cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, cold[i] + MIB);
        } else {
            (void)cuMulticastBindAddr(0, 0, cold[i] + MIB, 1, 0);
        }
    }
    hold_and_allocate();
}

static void *open_library(const char *file)
{
    char path[4096];
    void *library;

    (void)snprintf(path, sizeof(path), "%s/%s", getenv("SPW_TEST_FOLDER"), file);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return library;
}

#define LOOK_UP(name, library)                                                                     \
    __typeof__(name) *in_##name;                                                                   \
    *(void **)&in_##name = dlsym(library, #name)

/* As NCCL finds what it calls of libibverbs, and what of its own is called; one block each. */
static void tell(int first)
{
    void *nccl = open_library("libnccl.so.2"), *verbs = open_library("libibverbs.so.1");
    void *gdr = open_library("libgdrapi.so.2");
    struct ibv_mr_init_attr attributes = {.length = 1, .comp_mask = 2};
    struct ncclWindow_vidmem *window;
    void *block[COLD], *handle;

    LOOK_UP(ncclCommRegister, nccl);
    LOOK_UP(ncclCommWindowRegister, nccl);
    LOOK_UP(ibv_reg_mr, verbs);
    LOOK_UP(ibv_reg_mr_iova, verbs);
    LOOK_UP(ibv_reg_mr_iova2, verbs);
    LOOK_UP(ibv_reg_mr_ex, verbs);
    LOOK_UP(ibv_rereg_mr, verbs);
    LOOK_UP(cuFileBufRegister, open_library("libcufile.so.0"));
    LOOK_UP(gdr_pin_buffer, gdr);
    LOOK_UP(gdr_pin_buffer_v2, gdr);

    for (int i = 0; i < COLD; i++) {
        block[i] = (void *)(uintptr_t)(cold[(first + i) % COLD] + MIB);
    }
    *(void **)&in_ibv_reg_mr = dlvsym(verbs, "ibv_reg_mr", "IBVERBS_1.1");
    (void)in_ncclCommRegister(NULL, block[0], 1, &handle);
    (void)in_ncclCommWindowRegister(NULL, block[1], 1, &window, 0);
    (void)in_ibv_reg_mr(NULL, block[2], 1, 0);
    (void)in_ibv_reg_mr_iova(NULL, block[3], 1, 0, 0);
    (void)in_ibv_reg_mr_iova2(NULL, block[4], 1, 0, 0);
    attributes.addr = block[5];
    (void)in_ibv_reg_mr_ex(NULL, &attributes);
    (void)in_ibv_rereg_mr(NULL, 1, NULL, block[6], 1, 0);
    (void)in_cuFileBufRegister(block[7], 1, 0);
    (void)in_gdr_pin_buffer(NULL, (unsigned long)block[8], 1, 0, 0, NULL);
    (void)in_gdr_pin_buffer_v2(NULL, (unsigned long)block[9], 1, 0, NULL);
    for (int i = 0; i < 10; i++) {
        printf("keep %llx %x\n", cold[first + i], COLD_BYTES);
    }
    hold_and_allocate();
}

static void with_told(void)
{
    tell(0);
}

static void with_told_next(void)
{
    tell(1);
}

static void with_unpin(void)
{
    int local;

    find_interface();
    pin_cold(1);
    pin_cold(0);
    EXPECT(pin(&local, sizeof(local), 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(pin(NULL, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(pin(pointer(cold[0]), 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(prioritize(&local, sizeof(local), 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(mark_step(), CUDA_SUCCESS);
    hold_and_allocate();
}

static void with_priority(void)
{
    find_interface();
    for (int i = 0; i < COLD / 2; i++) {
        EXPECT(prioritize(pointer(cold[i]), COLD_BYTES, 3), CUDA_SUCCESS);
        printf("keep %llx %x\n", cold[i], COLD_BYTES);
    }
    hold_and_allocate();
}

/* ---- questions ---- */

static void ask(CUdeviceptr block, size_t bytes, CUmemoryPool owner)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr start = 0;
    unsigned type = 0;
    void *host = NULL;
    CUipcMemHandle ipc;
    CUresult shared;
    size_t size = 0;
    int ordinal = -1, handle;

    MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + 1));
    MUST(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block + 1));
    MUST(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block + 1));
    MUST(cuMemGetAddressRange(&start, &size, block + bytes - 1));
    if (type != CU_MEMORYTYPE_DEVICE || ordinal != 0 || pool != owner || start != block ||
        size != bytes) {
        printf("memory type %u, device %d, range %llx %zu\n", type, ordinal, start - block, size);
        status = 1;
    }
    EXPECT(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, block),
           CUDA_ERROR_INVALID_VALUE);
    if (bytes % 512 != 0) {
        EXPECT(cuMemGetAddressRange(&start, &size, block + bytes), CUDA_ERROR_INVALID_VALUE);
    }
    shared = cuIpcGetMemHandle(&ipc, block);
    if (shared != CUDA_SUCCESS) { /* page-locked memory cannot be shared */
        EXPECT(shared, CUDA_ERROR_INVALID_VALUE);
    }
    EXPECT(cuMemGetHandleForAddressRange(&handle, block, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                         0),
           CUDA_ERROR_NOT_SUPPORTED);
}

static void with_pointers(void)
{
    enum { BYTES = 12345 };
    static unsigned char text[BYTES], copy[BYTES];
    CUdeviceptr first, ordered, other;
    CUmemoryPool pool;

    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemAlloc(&first, 24 * MIB));
    MUST(cuMemAllocAsync(&ordered, BYTES, main_stream));
    MUST(cuMemAlloc(&other, BYTES));
    MUST(cuMemsetD8(other + BYTES - 1, 5, 1));
    ask(first, 24 * MIB, NULL);
    ask(ordered, BYTES, pool);
    ask(other, BYTES, NULL);
    memset(text, 77, sizeof(text));
    MUST(cuMemcpyHtoD(ordered, text, BYTES));
    MUST(cuMemcpyDtoD(other, ordered, BYTES));
    MUST(cuMemcpyDtoH(copy, other, BYTES));
    EXPECT(memcmp(text, copy, BYTES), CUDA_SUCCESS);
    /* All four pairings are legal. */
    MUST(cuMemFreeAsync(first, main_stream));
    MUST(cuMemFree(ordered));
    MUST(cuMemFree(other));
    EXPECT(cuMemFree(other), CUDA_ERROR_INVALID_VALUE);
}

/* ---- requests that can never be had ---- */

static void with_impossible(void)
{
    static const size_t sizes[] = {100 * MIB, (size_t)1 << 40, SIZE_MAX / 2};
    CUdeviceptr address;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        EXPECT(cuMemAlloc(&address, sizes[i]), CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT(cuMemAllocAsync(&address, sizes[i], main_stream), CUDA_ERROR_OUT_OF_MEMORY);
    }
}

/* The device is full for the first time when memory is freed behind the kernel. */
static void with_first(void)
{
    size_t bytes = 2 * HOT_BYTES;
    uint32_t *flag = new_flag();
    CUdeviceptr pending, block;

    MUST(cuMemAllocAsync(&pending, bytes, side_stream));
    spin(side_stream, flag);
    MUST(cuMemFreeAsync(pending, side_stream));
    MUST(cuMemAlloc(&block, bytes));
    MUST(cuMemsetD32Async((CUdeviceptr)(uintptr_t)flag, 1, 1, main_stream));
    MUST(cuMemFree(block));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"writes", writes},          {"threads", with_threads},
                 {"spin", with_spin},         {"wait", with_wait},
                 {"callback", with_callback}, {"copy", with_copy},
                 {"capture", with_capture},   {"faults", with_faults},
                 {"peer", with_peer},         {"peer-spin", with_peer_spin},
                 {"pointers", with_pointers}, {"registered", with_registered},
                 {"told", with_told},         {"told-next", with_told_next},
                 {"pin", with_pin},           {"unpin", with_unpin},
                 {"priority", with_priority}, {"impossible", with_impossible},
                 {"first", with_first}};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc >= 2 && strcmp(argv[1], modes[i].name) == 0) {
            thread_rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
            start();
            modes[i].run();
            finish();
            return status;
        }
    }
    fprintf(stderr, "usage: moves MODE [ROUNDS]\n");
    return 2;
}
