/* A program whose library shares memory with another process.
 *
 *     sharing LIBRARY WAY        a child opens what the library has allocated and reads it
 *     sharing LIBRARY WAY full   the program holds most of a device of 64 MiB; no child
 *     sharing LIBRARY WAY info   prints how much memory is free while the library holds its own
 *
 * WAY is one of library.h. Prints what the library answered, and what the child read. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "library.h"

enum { MIB = 1 << 20, PATTERN = 0x5a, BLOCKS = 7, BLOCK_BYTES = 8 * MIB, FULL_BYTES = 24 * MIB };

static share_function *find(void *library, const char *name)
{
    return library != NULL ? (share_function *)(uintptr_t)dlsym(library, name) : NULL;
}

static void enter(void)
{
    CUcontext context = NULL;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

/* The other process: opens the handle that comes through the pipe. */
static int open_handle(int pipe_end)
{
    unsigned char byte = 0;
    CUipcMemHandle handle;
    CUdeviceptr address;

    if (read(pipe_end, &handle, sizeof(handle)) != (ssize_t)sizeof(handle)) {
        return 0; /* there is none */
    }
    (void)unsetenv("SPILLWAY_STATS"); /* the parent's */
    enter();
    MUST(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(cuMemcpyDtoH(&byte, address + 3 * MIB, 1));
    MUST(cuIpcCloseMemHandle(address));
    printf("the child read %#x\n", byte);
    return 0;
}

static void fill(CUdeviceptr *blocks)
{
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAlloc(&blocks[i], BLOCK_BYTES));
        MUST(cuMemsetD8(blocks[i], (unsigned char)i, BLOCK_BYTES));
    }
}

static void check(CUdeviceptr *blocks)
{
    unsigned char byte;

    for (int i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < BLOCK_BYTES; at += MIB / 2) {
            MUST(cuMemcpyDtoH(&byte, blocks[i] + at, 1));
            HOLD(byte == i);
        }
        MUST(cuMemFree(blocks[i]));
    }
}

static void print_free(void)
{
    size_t left, total;

    MUST(cuMemGetInfo(&left, &total));
    printf("free: %zu MiB of %zu MiB\n", left / MIB, total / MIB);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    share_function *allocate = find(library, "share"), *release = find(library, "unshare");
    const char *way = argc > 2 ? argv[2] : "";
    int full = argc > 3 && strcmp(argv[3], "full") == 0;
    struct shared shared = {.bytes = full ? FULL_BYTES : 4 * MIB};
    int handles = strcmp(way, "runtime") == 0 || strcmp(way, "driver") == 0;
    CUdeviceptr blocks[BLOCKS];
    int ends[2], result;
    pid_t child;

    HOLD(allocate != NULL && release != NULL && pipe(ends) == 0);
    child = full ? -1 : fork();
    if (child == 0) {
        (void)close(ends[1]);
        return open_handle(ends[0]);
    }
    enter();
    if (full) {
        fill(blocks);
    }
    result = allocate(way, &shared);
    printf("shared: %d\n", result);
    (void)fflush(stdout);
    if (result == 0) {
        MUST(cuMemsetD8(shared.address, PATTERN, shared.bytes));
        MUST(cuCtxSynchronize());
    }
    if (result == 0 && handles && !full) {
        HOLD(write(ends[1], &shared.handle, sizeof(shared.handle)) > 0);
    }
    if (argc > 3 && strcmp(argv[3], "info") == 0) {
        print_free();
    }
    (void)close(ends[1]);
    if (child > 0) {
        HOLD(waitpid(child, NULL, 0) == child);
    }
    if (shared.address != 0) {
        printf("freed: %d\n", release(way, &shared));
    }
    if (full) {
        check(blocks);
    }
    return 0;
}
