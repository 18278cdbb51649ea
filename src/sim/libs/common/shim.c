#include "sim/libs/common/shim.h"

#include <stdio.h>
#include <string.h>

#include "sim/libs/common/driver.h"

/* The parameters of the driver's built-in kernels spw_touch_*; the layout is repeated in the
 * driver's kernel.c. */
#define RANGES_PER_LAUNCH 8

struct launch_args {
    struct {
        CUdeviceptr address;
        size_t bytes;
    } ranges[RANGES_PER_LAUNCH];
    uint64_t written;
    uint64_t nanoseconds; /* 0: computed from the bytes */
    struct sim_demand demand;
};

static void add(struct sim_shim_work *work, const void *address, size_t bytes, bool written)
{
    if (address != NULL && bytes > 0 && work->count < SIM_SHIM_RANGES) {
        work->ranges[work->count++] = (struct sim_shim_range){(CUdeviceptr)address, bytes, written};
    }
}

void sim_shim_add_read(struct sim_shim_work *work, const void *address, size_t bytes)
{
    add(work, address, bytes, false);
}

void sim_shim_add_write(struct sim_shim_work *work, const void *address, size_t bytes)
{
    add(work, address, bytes, true);
}

struct copy_args {
    CUdeviceptr to;
    CUdeviceptr from;
    size_t words;
};

static CUresult launch(CUkernel kernel, void *args, size_t size, CUstream stream)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    return sim_shim_driver()->cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL,
                                             extra);
}

/* Launches the kernel for the ranges from number `done` on. Returns how many there is room for. */
static size_t launch_part(CUkernel kernel, const struct sim_shim_work *work, size_t done,
                          CUstream stream, CUresult *ret_result)
{
    size_t left = work->count - done, count = left < RANGES_PER_LAUNCH ? left : RANGES_PER_LAUNCH;
    struct launch_args args = {.demand = {.work = SIM_WORK_MORE}};

    if (done == 0) {
        args.nanoseconds = work->nanoseconds;
        args.demand = work->demand;
    }
    for (size_t i = 0; i < count; i++) {
        args.ranges[i].address = work->ranges[done + i].address;
        args.ranges[i].bytes = work->ranges[done + i].bytes;
        args.written |= (uint64_t)work->ranges[done + i].written << i;
    }
    *ret_result = launch(kernel, &args, sizeof(args), stream);
    return count;
}

CUresult sim_shim_launch(const char *kernel, const struct sim_shim_work *work, CUstream stream)
{
    char name[64];
    CUkernel found;
    CUresult result = sim_shim_context();
    size_t done = 0;

    snprintf(name, sizeof(name), "spw_touch_%s", kernel);
    if (result == CUDA_SUCCESS) {
        result = sim_shim_kernel(name, &found);
    }
    while (result == CUDA_SUCCESS && done < work->count) {
        done += launch_part(found, work, done, stream, &result);
    }
    return result;
}

CUresult sim_shim_copy_words(CUdeviceptr to, CUdeviceptr from, size_t words, CUstream stream)
{
    struct copy_args args = {to, from, words};
    CUkernel found;
    CUresult result = sim_shim_context();

    if (result == CUDA_SUCCESS) {
        result = sim_shim_kernel("spw_copy", &found);
    }
    return result == CUDA_SUCCESS ? launch(found, &args, sizeof(args), stream) : result;
}

CUresult sim_shim_context(void)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUcontext ctx = NULL;
    CUresult result;

    if (driver == NULL) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    result = driver->cuCtxGetCurrent(&ctx);
    if (result != CUDA_SUCCESS || ctx != NULL) {
        return result;
    }
    result = driver->cuDevicePrimaryCtxRetain(&ctx, 0);
    return result == CUDA_SUCCESS ? driver->cuCtxSetCurrent(ctx) : result;
}

int sim_shim_capability(void)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUdevice device;
    int major = 0;

    if (sim_shim_context() == CUDA_SUCCESS && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        (void)driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                           device);
    }
    return major;
}

CUresult sim_shim_alloc(size_t bytes, void **ret_address)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr address;
    CUresult result = sim_shim_context();

    if (result != CUDA_SUCCESS) {
        return result;
    }
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    result = driver->cuMemAlloc(&address, bytes);
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    if (result == CUDA_SUCCESS) {
        *ret_address = (void *)address;
    }
    return result;
}

void sim_shim_free(void *address)
{
    if (address != NULL && sim_shim_driver() != NULL) {
        (void)sim_shim_driver()->cuMemFree((CUdeviceptr)address);
    }
}

void sim_shim_not_simulated(const char *name, const char *library, const char *hint, bool *reported)
{
    if (!__atomic_exchange_n(reported, true, __ATOMIC_RELAXED)) {
        fprintf(stderr, "spillway sim: %s of %s is not simulated and fails%s%s\n", name, library,
                hint[0] != '\0' ? "; " : "", hint);
    }
}
