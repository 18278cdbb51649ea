/* A process that shares a device with others: it does what the lines of its standard input say, and
 * answers each with a line.
 *
 *     take MIB     allocates; the result
 *     free         frees what was allocated last; the result
 *     ask          free and total MiB of the device
 *     list         what NVML says: MiB in use, and the processes with theirs
 *     spin         waits for a signal, holding whatever it holds
 *
 * The word on the command line is the ordinal of the device. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 64, MIB_SHIFT = 20 };

static CUdeviceptr blocks[MOST];
static int count;

static void take(unsigned long mib)
{
    CUresult result = cuMemAlloc(&blocks[count], (size_t)mib << MIB_SHIFT);

    count += result == CUDA_SUCCESS;
    printf("%d\n", (int)result);
}

static void ask(void)
{
    size_t left, total;

    MUST(cuMemGetInfo(&left, &total));
    printf("%zu %zu\n", left >> MIB_SHIFT, total >> MIB_SHIFT);
}

/* Of NVML's interface, which has a header of its own that need not be here. */
struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

/* By look-up, as programs use NVML. */
static void list(unsigned index)
{
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    int (*init)(void), (*handle)(unsigned, void **);
    int (*memory)(void *, struct memory *), (*running)(void *, unsigned *, struct process *);
    struct process infos[MOST];
    unsigned found = MOST;
    struct memory used;
    void *device;

    if (nvml == NULL) {
        printf("none\n");
        return;
    }
    *(void **)&init = dlsym(nvml, "nvmlInit_v2");
    *(void **)&handle = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&memory = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    *(void **)&running = dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
    MUST(init());
    MUST(handle(index, &device));
    MUST(memory(device, &used));
    MUST(running(device, &found, infos));
    printf("%llu", used.used >> MIB_SHIFT);
    for (unsigned i = 0; i < found; i++) {
        printf(" %u:%llu", infos[i].pid, infos[i].bytes >> MIB_SHIFT);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    int ordinal = argc > 1 ? atoi(argv[1]) : 0;
    unsigned index = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)ordinal;
    char line[64];
    CUcontext context;
    CUdevice device;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strncmp(line, "take ", 5) == 0) {
            take(strtoul(line + 5, NULL, 10));
        } else if (strcmp(line, "free\n") == 0) {
            printf("%d\n", (int)cuMemFree(blocks[--count]));
        } else if (strcmp(line, "ask\n") == 0) {
            ask();
        } else if (strcmp(line, "list\n") == 0) {
            list(index);
        } else if (strcmp(line, "spin\n") == 0) {
            (void)pause();
        }
    }
    return 0;
}
