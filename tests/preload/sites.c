/* Allocates from functions with known names, for test_sites.py.
 *
 *     sites COMMAND...     take: allocates and keeps; peak: allocates and frees; map: maps physical
 *                          memory of its own; thread: allocates on another thread; fill: allocates
 *                          until none is left, and once more; lock: page-locks host memory three
 *                          times and frees one; die: ends by a signal; fork: calls CUDA in a
 *                          child, where it fails; wait: prints a line, then reads one; exec:
 *                          executes this program anew, with the commands that follow; other:
 *                          executes `cat`; rename: allocates 100 times on another thread,
 *                          renames that, and allocates 100 times more */
#include "check.h"

#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default"), noinline))
#define HIDDEN   static __attribute__((noinline))

enum { MIB = 1 << 20 };

EXPORTED CUdeviceptr take_exported(size_t bytes);
EXPORTED CUdeviceptr take_in_order(size_t bytes);
EXPORTED void map_own(size_t bytes);
EXPORTED int fill(size_t bytes);
EXPORTED void *lock_host(size_t bytes);
EXPORTED void lock_own(void *memory, size_t bytes);

CUdeviceptr take_exported(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return block;
}

CUdeviceptr take_in_order(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, bytes, NULL));
    return block;
}

/* Has a symbol in the file only. */
HIDDEN CUdeviceptr take_hidden(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return block;
}

void *lock_host(size_t bytes)
{
    void *memory;

    MUST(cuMemHostAlloc(&memory, bytes, 0));
    return memory;
}

void lock_own(void *memory, size_t bytes)
{
    MUST(cuMemHostRegister(memory, bytes, 0));
}

/* 16 MiB at most, 8 MiB in the end. */
HIDDEN void lock(void)
{
    static _Alignas(4096) char own[2 * MIB];
    volatile int i; /* a loop that was unrolled is a site a round */
    void *host[2];

    for (i = 0; i < 2; i++) {
        host[i] = lock_host(i == 0 ? 6 * MIB : 8 * MIB);
    }
    lock_own(own, sizeof(own));
    MUST(cuMemFreeHost(host[1]));
}

int fill(size_t bytes)
{
    CUdeviceptr block;
    int failures = 0;

    while (failures < 2) {
        failures += cuMemAlloc(&block, bytes) != CUDA_SUCCESS;
    }
    return failures;
}

void map_own(size_t bytes)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, bytes, &prop, 0));
}

HIDDEN void peak(void)
{
    enum { COUNT = 8 };
    volatile int i; /* a loop that was unrolled is a site a round */
    CUdeviceptr blocks[COUNT];

    for (i = 0; i < COUNT; i++) {
        blocks[i] = take_in_order(8 * MIB);
    }
    for (i = 0; i < COUNT; i++) {
        MUST(cuMemFreeAsync(blocks[i], NULL));
    }
    MUST(cuCtxSynchronize());
}

static CUcontext context;

static void *on_thread(void *unused)
{
    MUST(prctl(PR_SET_NAME, "pt_autograd_7"));
    MUST(cuCtxSetCurrent(context));
    (void)take_exported(4 * MIB);
    return NULL;
}

/* A thread gets another name between allocations, all from one place. */
static void *on_renamed_thread(void *unused)
{
    const volatile int times = 200; /* so that the compiler does not make two loops of it */

    MUST(prctl(PR_SET_NAME, "early"));
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < times; i++) {
        if (i == times / 2) {
            MUST(prctl(PR_SET_NAME, "late"));
        }
        (void)take_exported(MIB / 4);
    }
    return NULL;
}

static void on_another(void *(*function)(void *unused))
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, function, NULL));
    MUST(pthread_join(thread, NULL));
}

static void begin(void)
{
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

/* CUDA does not work in a child; its calls must not change the parent's sites. */
static void fork_child(void)
{
    pid_t child = fork();
    CUdeviceptr block;

    if (child == 0) {
        _exit(cuMemAlloc(&block, MIB) == CUDA_SUCCESS);
    }
    MUST(waitpid(child, NULL, 0) != child);
}

static void run(const char *command)
{
    if (strcmp(command, "take") == 0) {
        (void)take_exported(3 * MIB);
        (void)take_hidden(5 * MIB);
    } else if (strcmp(command, "peak") == 0) {
        peak();
    } else if (strcmp(command, "map") == 0) {
        map_own(16 * MIB);
    } else if (strcmp(command, "lock") == 0) {
        lock();
    } else if (strcmp(command, "fill") == 0) {
        (void)fill(64 * MIB);
    } else if (strcmp(command, "wait") == 0) {
        puts("waiting");
        fflush(stdout);
        (void)getchar();
    } else if (strcmp(command, "fork") == 0) {
        fork_child();
    } else if (strcmp(command, "die") == 0) {
        MUST(raise(SIGKILL));
    } else if (strcmp(command, "thread") == 0) {
        on_another(on_thread);
    } else if (strcmp(command, "rename") == 0) {
        on_another(on_renamed_thread);
    }
}

int main(int argc, char **argv)
{
    begin();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "exec") == 0) {
            char *program = argv[0];

            argv[i] = program;
            execv(program, argv + i);
        } else if (strcmp(argv[i], "other") == 0) {
            execlp("cat", "cat", (char *)NULL);
        }
        run(argv[i]);
    }
    return 0;
}
