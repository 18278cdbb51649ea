/* Uses device memory in the ways its arguments name, one after the other, for the tests of the
 * verdict. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MIB = 1 << 20, BLOCKS = 4096 };

static void *blocks[BLOCKS];
static int count;

static cudaError_t take(size_t mib, bool ordered)
{
    cudaError_t result = ordered ? cudaMallocAsync(&blocks[count], mib * MIB, NULL)
                                 : cudaMalloc(&blocks[count], mib * MIB);

    count += result == cudaSuccess;
    return result;
}

static void give_all(void)
{
    while (count > 0) {
        MUST(cudaFree(blocks[--count]));
    }
}

/* Blocks of 1 GiB, stream-ordered as PyTorch's tensors. */
static void take_gib(int gib)
{
    for (int i = 0; i < gib; i++) {
        MUST(take(1024, true));
    }
}

/* Blocks of 16 MiB until there is no more. */
static void fill(bool ordered)
{
    while (count < BLOCKS && take(16, ordered) == cudaSuccess) {
        continue;
    }
    (void)cudaGetLastError();
}

static void *fill_in_thread(void *unused)
{
    (void)unused;
    (void)prctl(PR_SET_NAME, "stuffer");
    fill(true);
    return NULL;
}

static void thread(void)
{
    pthread_t other;

    MUST(pthread_create(&other, NULL, fill_in_thread, NULL));
    MUST(pthread_join(other, NULL));
}

/* Allocates all that is left, to the last granule, so that a module does not fit. */
static void exhaust(void)
{
    size_t mib = 16;

    while (mib > 0) {
        if (take(mib, false) != cudaSuccess) {
            mib /= 2;
        }
    }
    (void)cudaGetLastError();
}

static CUfunction kernel(void)
{
    CUfunction function;
    CUmodule module;

    MUST(cudaFree(NULL)); /* makes a context */
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&function, module, "some_kernel"));
    return function;
}

/* Reads before and after a kernel that computes nothing was launched. */
static void reads(void)
{
    static char bytes[MIB];

    MUST(take(1, false));
    MUST(cudaMemcpy(bytes, blocks[0], 8, cudaMemcpyDeviceToHost));
    MUST(cuLaunchKernel(kernel(), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    MUST(cudaMemcpy(bytes, blocks[0], 8, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpyAsync(bytes, blocks[0], 4096, cudaMemcpyDeviceToHost, NULL));
    MUST(cudaMemcpyAsync(bytes, blocks[0], 4097, cudaMemcpyDeviceToHost, NULL));
    MUST(cudaMemcpy(blocks[0], bytes, 8, cudaMemcpyHostToDevice));
    MUST(cuMemcpy((CUdeviceptr)bytes, (CUdeviceptr)(bytes + 8), 8)); /* reads the host itself */
}

/* Resets the peak of stream-ordered allocations, as PyTorch does. */
static void reset(void)
{
    unsigned long long zero = 0;
    cudaMemPool_t pool;

    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
}

/* Physical chunks of the program's own: as many as fit, or 100 one after the other. */
static void chunks(bool keep)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    };
    CUmemGenericAllocationHandle handle;
    int created = 0;

    MUST(cudaFree(NULL));
    while (created < 100 && cuMemCreate(&handle, 16 * MIB, &properties, 0) == CUDA_SUCCESS) {
        created++;
        if (!keep) {
            MUST(cuMemRelease(handle));
        }
    }
}

static void host(void)
{
    void *block;

    MUST(cudaFree(NULL));
    (void)cudaMallocHost(&block, (size_t)1 << 40);
}

/* Two processes; each takes a block, on device 0 or on one of its own, and holds it until both have
 * one. */
static void children(bool apart)
{
    int taken[2], end[2];
    char byte = 0;

    HOLD(pipe(taken) == 0 && pipe(end) == 0);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            close(end[1]);
            MUST(cudaSetDevice(apart ? i : 0));
            MUST(take(16 * (size_t)(i + 1), false));
            HOLD(write(taken[1], &byte, 1) == 1);
            HOLD(read(end[0], &byte, 1) == 0);
            _exit(0);
        }
    }
    close(taken[1]);
    for (int i = 0; i < 2; i++) {
        HOLD(read(taken[0], &byte, 1) == 1);
    }
    close(end[1]);
    while (wait(NULL) > 0) {
        continue;
    }
}

static void act(const char *what)
{
    if (strcmp(what, "take") == 0) {
        MUST(take(48, false));
    } else if (strcmp(what, "take-ordered") == 0) {
        MUST(take(80, true));
    } else if (strcmp(what, "give") == 0) {
        give_all();
    } else if (strcmp(what, "fill") == 0) {
        fill(false);
    } else if (strcmp(what, "fill-ordered") == 0) {
        fill(true);
    } else if (strcmp(what, "start") == 0) {
        MUST(cuInit(0));
    } else if (strcmp(what, "much") == 0) {
        (void)take(1024, false);
        (void)cudaGetLastError();
    } else if (strcmp(what, "again") == 0) {
        MUST(take(16, false));
    } else if (strcmp(what, "thread") == 0) {
        thread();
    } else if (strcmp(what, "exhaust") == 0) {
        exhaust();
    } else if (strcmp(what, "module") == 0) {
        (void)kernel();
    } else if (strcmp(what, "reads") == 0) {
        reads();
    } else if (strcmp(what, "chunks") == 0) {
        chunks(true);
    } else if (strcmp(what, "passing-chunks") == 0) {
        chunks(false);
    } else if (strcmp(what, "reset") == 0) {
        reset();
    } else if (strcmp(what, "host") == 0) {
        host();
    } else if (strcmp(what, "children") == 0) {
        children(false);
    } else if (strcmp(what, "children-apart") == 0) {
        children(true);
    } else if (strncmp(what, "gib=", 4) == 0) {
        take_gib(atoi(what + 4));
    } else if (strcmp(what, "rest") == 0) {
        sleep(14); /* longer than the interval of progress lines */
    } else if (strcmp(what, "fail") == 0) {
        exit(3);
    } else if (strcmp(what, "leave") == 0) {
        _exit(4);
    } else if (strcmp(what, "kill") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(what, "interrupt") == 0) {
        (void)raise(SIGINT);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        printf("%s\n", argv[i]);
        (void)fflush(stdout);
        act(argv[i]);
    }
    return 0;
}
