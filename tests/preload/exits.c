/* Allocates 3 MiB and leaves in the way its argument names, without freeing. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* Unmaps and releases of the simulated driver so far. */
static unsigned long long memory_calls(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    unsigned long long (*calls)(const char *name);

    HOLD(driver != NULL);
    *(void **)&calls = dlsym(driver, "spillway_sim_calls");
    HOLD(calls != NULL);
    return calls("cuMemUnmap") + calls("cuMemRelease");
}

/* Runs after exit handlers that were registered at the first use of CUDA. */
static void reset_late(void)
{
    unsigned long long before = memory_calls();

    MUST(cudaDeviceReset());
    printf("memory calls: %llu\n", memory_calls() - before);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    void *block = NULL;

    if (strcmp(way, "reset") == 0) {
        HOLD(atexit(reset_late) == 0);
    }
    MUST(cudaMalloc(&block, 3 << 20));
    if (strcmp(way, "exit") == 0) {
        exit(3);
    }
    if (strcmp(way, "_exit") == 0) {
        _exit(4);
    }
    if (strcmp(way, "abort") == 0) {
        abort();
    }
    if (strcmp(way, "kill") == 0) {
        (void)raise(SIGKILL);
    }
    return 5;
}
