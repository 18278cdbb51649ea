#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS    1024
#define KNOWN_MAX 32

static CUmodule modules[2];
static size_t module_count;

static struct {
    _Atomic uint32_t *flag; /* page-locked; the kernel polls it */
    pthread_t timer;
    double end;
} spin;

static void load(const char *text)
{
    char log[2048] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof(log)};
    CUresult result = cuModuleLoadDataEx(&modules[module_count], text, 2, options, values);

    for (char *c = log; *c != '\0'; c++) {
        *c = *c < ' ' ? ' ' : *c;
    }
    if (result != CUDA_SUCCESS) {
        probe_note("failed", "load kernels", "%s %s", probe_error(result), log);
        exit(1);
    }
    module_count++;
}

void kernels_load(void)
{
    int major = 0;

    load(kernels_ptx);
    MUST(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, probe.device));
    if (major >= 9) {
        load(kernels_sm90_ptx);
    }
}

static CUfunction look_up(const char *name)
{
    CUfunction function = NULL;

    /* The simulated driver knows every name, in any module. */
    for (size_t i = module_count; i-- > 0 && function == NULL;) {
        if (cuModuleGetFunction(&function, modules[i], name) != CUDA_SUCCESS) {
            function = NULL;
        }
    }
    return function;
}

/* Asks the driver once for each name: a launch that is measured must not contain it. */
CUfunction kernels_find(const char *name)
{
    static struct {
        const char *name;
        CUfunction function;
    } known[KNOWN_MAX];
    static size_t count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    CUfunction function = NULL;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && function == NULL; i++) {
        function = strcmp(known[i].name, name) == 0 ? known[i].function : NULL;
    }
    if (function == NULL) {
        function = look_up(name);
        if (function != NULL && count < KNOWN_MAX) {
            known[count].name = name;
            known[count++].function = function;
        }
    }
    pthread_mutex_unlock(&lock);
    return function;
}

void kernels_launch(const char *name, unsigned int blocks, CUstream stream, void **params)
{
    CUfunction function = kernels_find(name);

    if (function == NULL) {
        probe_note("failed", name, "no such kernel");
        exit(1);
    }
    MUST(cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream, params, NULL));
}

void kernels_fill(CUdeviceptr p, size_t words, uint32_t value, CUstream stream)
{
    void *params[] = {&p, &words, &value};

    kernels_launch("spw_fill", BLOCKS, stream, params);
}

void kernels_add(CUdeviceptr p, size_t words, uint32_t value, CUstream stream)
{
    void *params[] = {&p, &words, &value};

    kernels_launch("spw_add", BLOCKS, stream, params);
}

void kernels_copy(CUdeviceptr dst, CUdeviceptr src, size_t words, CUstream stream)
{
    void *params[] = {&dst, &src, &words};

    kernels_launch("spw_copy", BLOCKS, stream, params);
}

uint64_t kernels_differ(CUdeviceptr p, size_t words, uint32_t value)
{
    static CUdeviceptr count;
    uint64_t result = 0;
    void *params[] = {&p, &words, &value, &count};

    if (count == 0) {
        MUST(cuMemAlloc(&count, sizeof(result)));
    }
    MUST(cuMemcpyHtoD(count, &result, sizeof(result)));
    MUST(cuCtxSynchronize());
    kernels_launch("spw_check", BLOCKS, NULL, params);
    MUST(cuMemcpyDtoH(&result, count, sizeof(result)));
    return result;
}

void kernels_warm_up(void)
{
    CUdeviceptr words;

    MUST(cuMemAlloc(&words, 1024));
    kernels_fill(words, 256, 1, NULL);
    kernels_differ(words, 256, 1);
    MUST(cuMemFree(words));
}

static void *release_later(void *unused)
{
    while (probe_now() < spin.end && atomic_load(spin.flag) == 0) {
        probe_pause(200);
    }
    atomic_store(spin.flag, 1);
    return NULL;
}

void kernels_spin(CUstream stream, double microseconds)
{
    CUdeviceptr address;

    if (spin.flag == NULL) {
        void *memory;

        MUST(cuMemHostAlloc(&memory, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
        spin.flag = memory;
    }
    atomic_store(spin.flag, 0);
    MUST(cuMemHostGetDevicePointer(&address, (void *)spin.flag, 0));
    void *params[] = {&address};
    MUST(cuLaunchKernel(kernels_find("spw_spin"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    spin.end = probe_now() + microseconds;
    if (pthread_create(&spin.timer, NULL, release_later, NULL) != 0) {
        atomic_store(spin.flag, 1);
        probe_note("failed", "pthread_create", "no thread");
        exit(1);
    }
    probe_pause(3000); /* until the kernel has surely begun */
}

bool kernels_release(CUstream stream)
{
    bool ran = atomic_exchange(spin.flag, 1) == 0;

    pthread_join(spin.timer, NULL);
    MUST(cuStreamSynchronize(stream));
    return ran;
}
