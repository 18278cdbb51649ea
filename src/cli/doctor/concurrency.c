#include "cli/doctor/tables.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SPIN_MS = 200, WORK_BYTES = 32 << 20 };

/* A kernel that runs until its flag is 1. The flag is in page-locked host memory. */
struct spinner {
    const struct spw_cli_cuda *cuda;
    CUfunction kernel;
    CUstream stream;
    _Atomic uint32_t *flag;
    pthread_t setter;
};

struct work {
    const struct spw_cli_cuda *cuda;
    CUdevice device;
    struct spw_cli_mapped range; /* mapped before the first call */
    CUmemGenericAllocationHandle other;
    CUdeviceptr block;
};

/* The measured calls. The order matters, because later calls use the results of earlier calls. */
enum call { CREATE, UNMAP, MAP, SET_ACCESS, RELEASE, ALLOC, FREE, CALLS };

static const char *const names[CALLS] = {
    [CREATE] = "cuMemCreate",   [UNMAP] = "cuMemUnmap of an idle range",
    [MAP] = "cuMemMap",         [SET_ACCESS] = "cuMemSetAccess",
    [RELEASE] = "cuMemRelease", [ALLOC] = "cuMemAlloc",
    [FREE] = "cuMemFree",
};

static CUresult make_call(struct work *work, enum call call)
{
    CUmemAllocationProp properties = spw_cli_place_properties(spw_cli_place_device(work->device));

    switch (call) {
    case CREATE:
        return work->cuda->cuMemCreate(&work->other, WORK_BYTES, &properties, 0);
    case UNMAP:
        return work->cuda->cuMemUnmap(work->range.address, WORK_BYTES);
    case MAP:
        return work->cuda->cuMemMap(work->range.address, WORK_BYTES, 0, work->other, 0);
    case SET_ACCESS:
        return spw_cli_cuda_allow(work->cuda, work->device, work->range.address, WORK_BYTES);
    case RELEASE:
        return work->cuda->cuMemRelease(work->range.chunk);
    case ALLOC:
        return work->cuda->cuMemAlloc_v2(&work->block, WORK_BYTES);
    default:
        return work->cuda->cuMemFree_v2(work->block);
    }
}

static void *set_flag_later(void *argument)
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

/* Launches the kernel once with the flag set, so that it is loaded before the measurement. */
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
    if (pthread_create(&spinner->setter, NULL, set_flag_later, spinner) != 0) {
        atomic_store(spinner->flag, 1);
        spinner->cuda->cuStreamSynchronize(spinner->stream);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    usleep(5000);
    return CUDA_SUCCESS;
}

static void spinner_wait(struct spinner *spinner)
{
    pthread_join(spinner->setter, NULL);
    spinner->cuda->cuStreamSynchronize(spinner->stream);
}

static CUresult work_init(struct work *work, const struct spw_cli_cuda *cuda, CUdevice device)
{
    *work = (struct work){.cuda = cuda, .device = device};
    return spw_cli_cuda_map(cuda, device, spw_cli_place_device(device), WORK_BYTES, &work->range);
}

/* After the calls, `other` is mapped, and the first chunk is released. */
static void work_fini(struct work *work)
{
    work->range.chunk = work->other;
    spw_cli_cuda_unmap(work->cuda, &work->range);
}

/* Returns false if the call failed. Later calls depend on its success. */
static bool measure_call(struct spinner *spinner, struct work *work, enum call call,
                         struct spw_cli_report *report)
{
    CUresult result = spinner_start(spinner);
    bool running;
    double us;

    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "%s\t\tnot measured: %s", names[call],
                           spw_cli_cuda_error(spinner->cuda, result));
        return false;
    }
    us = spw_cli_now_us();
    result = make_call(work, call);
    us = spw_cli_now_us() - us;
    running = atomic_load(spinner->flag) == 0;
    spinner_wait(spinner);
    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "%s\t%.1f\tfailed: %s", names[call], us,
                           spw_cli_cuda_error(spinner->cuda, result));
        return false;
    }
    spw_cli_report_row(report, "%s\t%.1f\t%s", names[call], us, running ? "no" : "yes");
    return true;
}

void spw_cli_doctor_measure_concurrency(const struct spw_cli_cuda *cuda, CUdevice device,
                                        CUmodule module, struct spw_cli_report *report)
{
    static const char *const columns[] = {"call", "us", "waits for the kernel", NULL};
    struct spinner spinner;
    struct work work;
    CUresult result;

    spw_cli_report_table(report, "beside_kernel",
                         "Memory calls while a kernel runs on another stream (32 MiB)", columns);
    result = spinner_init(&spinner, cuda, module);
    if (result == CUDA_SUCCESS) {
        result = work_init(&work, cuda, device);
        if (result != CUDA_SUCCESS) {
            spinner_fini(&spinner);
        }
    }
    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "all\t\tnot measured: %s", spw_cli_cuda_error(cuda, result));
        return;
    }
    for (int call = 0; call < CALLS; call++) {
        if (!measure_call(&spinner, &work, (enum call)call, report)) {
            break;
        }
    }
    work_fini(&work);
    spinner_fini(&spinner);
}
