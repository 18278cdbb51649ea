#include "sim/runtime/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "common/bounds.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/error.h"

enum { NO_DEVICE = -1 };

struct simrt_device {
    CUdevice handle;
    CUcontext primary; /* from the last retain; stale when not retained */
    bool retained;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct simrt_device devices[SPW_DEVICES_MAX]; /* under `lock`, except the handles */
static int device_count;                             /* written once, by init_once() */
static _Atomic(int) default_device;
static _Atomic(unsigned int) resets; /* number of resets of all devices */

static _Thread_local int thread_device = NO_DEVICE;
static _Thread_local unsigned int thread_resets; /* `resets` at the last check of the context */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t once_error;

static cudaError_t find_devices(void)
{
    int version = 0;
    (void)simrt_driver.cuDriverGetVersion(&version);

    CUresult result = simrt_driver.cuInit(0);
    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }

    int count = 0;
    result = simrt_driver.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    if (count == 0) {
        return cudaErrorNoDevice;
    }
    count = count < SPW_DEVICES_MAX ? count : SPW_DEVICES_MAX;
    for (int i = 0; i < count; i++) {
        result = simrt_driver.cuDeviceGet(&devices[i].handle, i);
        if (result != CUDA_SUCCESS) {
            return simrt_error(result);
        }
    }
    device_count = count;
    return cudaSuccess;
}

static void init_once(void)
{
    once_error = simrt_driver_load();
    if (once_error == cudaSuccess) {
        once_error = find_devices();
    }
}

cudaError_t simrt_init(void)
{
    (void)pthread_once(&once, init_once);
    return once_error;
}

int simrt_device_count(void)
{
    return device_count;
}

cudaError_t simrt_device_handle(int ordinal, CUdevice *ret_device)
{
    if (ordinal < 0 || ordinal >= device_count) {
        return cudaErrorInvalidDevice;
    }
    *ret_device = devices[ordinal].handle;
    return cudaSuccess;
}

static int chosen_device(void)
{
    return thread_device != NO_DEVICE ? thread_device : atomic_load(&default_device);
}

cudaError_t simrt_device_current(int *ret_ordinal)
{
    CUdevice handle;

    /* It fails if no context is current, or if another thread has reset the current context. */
    if (simrt_driver.cuCtxGetDevice(&handle) != CUDA_SUCCESS) {
        *ret_ordinal = chosen_device();
        return cudaSuccess;
    }
    for (int i = 0; i < device_count; i++) {
        if (devices[i].handle == handle) {
            *ret_ordinal = i;
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidDevice;
}

cudaError_t simrt_context_primary(int ordinal, CUcontext *ret_context)
{
    if (ordinal < 0 || ordinal >= device_count) {
        return cudaErrorInvalidDevice;
    }
    struct simrt_device *device = &devices[ordinal];
    CUresult result = CUDA_SUCCESS;

    (void)pthread_mutex_lock(&lock);
    if (!device->retained) {
        result = simrt_driver.cuDevicePrimaryCtxRetain(&device->primary, device->handle);
        device->retained = result == CUDA_SUCCESS;
    }
    CUcontext context = device->primary;
    (void)pthread_mutex_unlock(&lock);

    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    *ret_context = context;
    return cudaSuccess;
}

static cudaError_t activate(int ordinal)
{
    CUcontext context;
    cudaError_t error = simrt_context_primary(ordinal, &context);
    if (error != cudaSuccess) {
        return error;
    }
    thread_resets = atomic_load(&resets);
    return simrt_error(simrt_driver.cuCtxSetCurrent(context));
}

cudaError_t simrt_device_choose(int ordinal)
{
    if (ordinal < 0 || ordinal >= device_count) {
        return cudaErrorInvalidDevice;
    }
    cudaError_t error = activate(ordinal);
    if (error == cudaSuccess) {
        thread_device = ordinal;
    }
    return error;
}

void simrt_device_set_default(int ordinal)
{
    atomic_store(&default_device, ordinal);
}

/* Returns true if `context` is a primary context that another thread has reset. */
static bool was_reset(CUcontext context)
{
    bool reset = false;

    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < device_count; i++) {
        reset = reset || (devices[i].primary == context && !devices[i].retained);
    }
    (void)pthread_mutex_unlock(&lock);
    return reset;
}

cudaError_t simrt_context_ensure(void)
{
    CUcontext context = NULL;
    CUresult result = simrt_driver.cuCtxGetCurrent(&context);

    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    if (context != NULL) {
        unsigned int now = atomic_load(&resets);
        if (thread_resets == now || !was_reset(context)) {
            thread_resets = now;
            return cudaSuccess;
        }
    }
    return activate(chosen_device());
}

cudaError_t simrt_context_reset(void)
{
    int ordinal;
    cudaError_t error = simrt_device_current(&ordinal);
    if (error != cudaSuccess) {
        return error;
    }
    struct simrt_device *device = &devices[ordinal];

    (void)pthread_mutex_lock(&lock);
    CUresult result = simrt_driver.cuDevicePrimaryCtxReset(device->handle);
    if (result == CUDA_SUCCESS) {
        device->retained = false;
        (void)atomic_fetch_add(&resets, 1);
    }
    (void)pthread_mutex_unlock(&lock);

    if (result == CUDA_SUCCESS) {
        thread_device = ordinal;
        simrt_error_clear_all();
    }
    return simrt_error(result);
}

cudaError_t simrt_context_current(CUcontext *ret_context)
{
    return simrt_error(simrt_driver.cuCtxGetCurrent(ret_context));
}
