/* Stand-in for NVML, for test_oom.py: this process holds 1000 MiB of a device of 1 GiB, and three
 * others hold 30 MiB, 12 MiB, and what is not told.
 *
 * The environment variable NVML_SHIM names what fails: `init`, `find`, `memory` or `processes`; or
 * is `untold`, and what this process holds is not told. It is built once more without the function
 * for the memory. It has the second version of the list of processes only. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { MIB = 1 << 20, FAILS = 999, OWN_MIB = 1000, COUNT = 4 };

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int instances[2];
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret_device);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret_memory);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned int *count,
                                                   struct process *ret_processes);

static int ready;

static bool is_asked(const char *what)
{
    const char *word = getenv("NVML_SHIM");

    return word != NULL && strcmp(word, what) == 0;
}

static int answer(const char *what)
{
    return is_asked(what) ? FAILS : 0;
}

int nvmlInit_v2(void)
{
    ready += answer("init") == 0;
    return answer("init");
}

int nvmlShutdown(void)
{
    ready--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret_device)
{
    *ret_device = &ready;
    return (ready == 1 || is_asked("init")) && strlen(bus) == strlen("00000000:00:00.0")
               ? answer("find")
               : FAILS;
}

#ifndef WITHOUT_MEMORY
int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret_memory)
{
    *ret_memory = (struct memory){.total = 1024ULL * MIB, .used = 1024ULL * MIB};
    return device == &ready ? answer("memory") : FAILS;
}
#endif

int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned int *count,
                                            struct process *ret_processes)
{
    const struct process processes[COUNT] = {
        {.pid = 1, .bytes = 30ULL * MIB},
        {.pid = (unsigned int)getpid(), .bytes = is_asked("untold") ? ~0ULL : 1ULL * OWN_MIB * MIB},
        {.pid = 2, .bytes = ~0ULL},
        {.pid = 3, .bytes = 12ULL * MIB}};

    if (*count < COUNT || device != &ready) {
        return FAILS;
    }
    *count = COUNT;
    memcpy(ret_processes, processes, sizeof(processes));
    return answer("processes");
}
