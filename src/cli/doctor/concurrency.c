/* One thread more than the rest of the command: it ends a spinning kernel after a while, for calls
 * that turn out to wait for it. */
#include "cli/doctor/concurrency.h"

#include "cli/doctor/timing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SPIN_MS = 200, BESIDE_BYTES = 32 << 20 };

/* A kernel that runs until its flag, in page-locked host memory, is raised. */
struct spinner {
    const struct spw_cli_cuda *cuda;
    CUfunction kernel;
    CUstream stream;
    _Atomic uint32_t *flag;
    pthread_t raiser;
};

/* What the calls beside the running kernel work on. */
struct beside {
    const struct spw_cli_cuda *cuda;
    CUdevice device;
    CUdeviceptr address; /* reserved; mapped to `chunk` when the calls begin */
    CUmemGenericAllocationHandle chunk;
    CUmemGenericAllocationHandle other;
    CUdeviceptr block;
};

static CUresult do_create(struct beside *beside)
{
    CUmemAllocationProp properties = spw_cli_place_properties(spw_cli_place_device(beside->device));

    return beside->cuda->cuMemCreate(&beside->other, BESIDE_BYTES, &properties, 0);
}

static CUresult do_unmap(struct beside *beside)
{
    return beside->cuda->cuMemUnmap(beside->address, BESIDE_BYTES);
}

static CUresult do_map(struct beside *beside)
{
    return beside->cuda->cuMemMap(beside->address, BESIDE_BYTES, 0, beside->other, 0);
}

static CUresult do_set_access(struct beside *beside)
{
    return spw_cli_cuda_allow(beside->cuda, beside->device, beside->address, BESIDE_BYTES);
}

static CUresult do_release(struct beside *beside)
{
    return beside->cuda->cuMemRelease(beside->chunk);
}

static CUresult do_alloc(struct beside *beside)
{
    return beside->cuda->cuMemAlloc_v2(&beside->block, BESIDE_BYTES);
}

static CUresult do_free(struct beside *beside)
{
    return beside->cuda->cuMemFree_v2(beside->block);
}

/* In this order: each finds what the one before has left. */
static const struct {
    const char *name;
    CUresult (*call)(struct beside *beside);
} beside_calls[] = {
    {"cuMemCreate", do_create},   {"cuMemUnmap of an idle range", do_unmap},
    {"cuMemMap", do_map},         {"cuMemSetAccess", do_set_access},
    {"cuMemRelease", do_release}, {"cuMemAlloc", do_alloc},
    {"cuMemFree", do_free},
};

static void *raise_later(void *argument)
{
    struct spinner *spinner = argument;

    usleep(SPIN_MS * 1000);
    atomic_store(spinner->flag, 1);
    return NULL;
}

static CUresult spinner_launch(struct spinner *spinner)
{
    void *address = (void *)(uintptr_t)spinner->flag;
    void *arguments[] = {&address};

    return spinner->cuda->cuLaunchKernel(spinner->kernel, 1, 1, 1, 1, 1, 1, 0, spinner->stream,
                                         arguments, NULL);
}

/* The first launch, with the flag up already, loads the kernel. */
static CUresult spinner_init(struct spinner *spinner, const struct spw_cli_cuda *cuda,
                             CUmodule module)
{
    void *flag = NULL;
    CUresult result;

    spinner->cuda = cuda;
    result = cuda->cuModuleGetFunction(&spinner->kernel, module, "spw_spin");
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = cuda->cuMemHostAlloc(&flag, sizeof(*spinner->flag), CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    spinner->flag = flag;
    atomic_store(spinner->flag, 1);
    result = cuda->cuStreamCreate(&spinner->stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) {
        goto err_alloc;
    }
    result = spinner_launch(spinner);
    if (result == CUDA_SUCCESS) {
        result = cuda->cuStreamSynchronize(spinner->stream);
    }
    if (result == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
    }
    cuda->cuStreamDestroy_v2(spinner->stream);
err_alloc:
    cuda->cuMemFreeHost(flag);
    return result;
}

static void spinner_fini(struct spinner *spinner)
{
    spinner->cuda->cuStreamDestroy_v2(spinner->stream);
    spinner->cuda->cuMemFreeHost((void *)(uintptr_t)spinner->flag);
}

static CUresult spinner_start(struct spinner *spinner)
{
    CUresult result;

    atomic_store(spinner->flag, 0);
    result = spinner_launch(spinner);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (pthread_create(&spinner->raiser, NULL, raise_later, spinner) != 0) {
        atomic_store(spinner->flag, 1);
        spinner->cuda->cuStreamSynchronize(spinner->stream);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    usleep(5000);
    return CUDA_SUCCESS;
}

static void spinner_wait(struct spinner *spinner)
{
    pthread_join(spinner->raiser, NULL);
    spinner->cuda->cuStreamSynchronize(spinner->stream);
}

static CUresult beside_init(struct beside *beside, const struct spw_cli_cuda *cuda, CUdevice device)
{
    CUmemAllocationProp properties = spw_cli_place_properties(spw_cli_place_device(device));
    CUresult result;

    *beside = (struct beside){.cuda = cuda, .device = device};
    result = cuda->cuMemAddressReserve(&beside->address, BESIDE_BYTES, 0, 0, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = cuda->cuMemCreate(&beside->chunk, BESIDE_BYTES, &properties, 0);
    if (result != CUDA_SUCCESS) {
        goto err_reserve;
    }
    result = cuda->cuMemMap(beside->address, BESIDE_BYTES, 0, beside->chunk, 0);
    if (result != CUDA_SUCCESS) {
        goto err_create;
    }
    result = do_set_access(beside);
    if (result == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
    }
    do_unmap(beside);
err_create:
    cuda->cuMemRelease(beside->chunk);
err_reserve:
    cuda->cuMemAddressFree(beside->address, BESIDE_BYTES);
    return result;
}

/* After all calls `other` is mapped and `chunk` is gone. */
static void beside_fini(struct beside *beside)
{
    do_unmap(beside);
    beside->cuda->cuMemRelease(beside->other);
    beside->cuda->cuMemAddressFree(beside->address, BESIDE_BYTES);
}

/* False when the call failed: the ones after it would find the wrong things. */
static bool measure_beside_call(struct spinner *spinner, struct beside *beside, size_t i,
                                struct spw_cli_report *report)
{
    CUresult result = spinner_start(spinner);
    bool running;
    double us;

    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "%s\t\tnot measured: %s", beside_calls[i].name,
                           spw_cli_cuda_error(spinner->cuda, result));
        return false;
    }
    us = spw_cli_now_us();
    result = beside_calls[i].call(beside);
    us = spw_cli_now_us() - us;
    running = atomic_load(spinner->flag) == 0;
    spinner_wait(spinner);
    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "%s\t%.1f\tfailed: %s", beside_calls[i].name, us,
                           spw_cli_cuda_error(spinner->cuda, result));
        return false;
    }
    spw_cli_report_row(report, "%s\t%.1f\t%s", beside_calls[i].name, us,
                       running ? "no: the kernel runs on" : "yes");
    return true;
}

void spw_cli_doctor_measure_concurrency(const struct spw_cli_cuda *cuda, CUdevice device,
                                        CUmodule module, struct spw_cli_report *report)
{
    static const char *const columns[] = {"call", "us", "waits for the kernel", NULL};
    struct spinner spinner;
    struct beside beside;
    CUresult result;

    spw_cli_report_table(report, "beside_kernel",
                         "Calls while a kernel runs on another stream (32 MiB)", columns);
    result = spinner_init(&spinner, cuda, module);
    if (result == CUDA_SUCCESS) {
        result = beside_init(&beside, cuda, device);
        if (result != CUDA_SUCCESS) {
            spinner_fini(&spinner);
        }
    }
    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "all\t\tnot measured: %s", spw_cli_cuda_error(cuda, result));
        return;
    }
    for (size_t i = 0; i < sizeof(beside_calls) / sizeof(*beside_calls); i++) {
        if (!measure_beside_call(&spinner, &beside, i, report)) {
            break;
        }
    }
    beside_fini(&beside);
    spinner_fini(&spinner);
}
