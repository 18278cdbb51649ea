#include "sim/driver/api/primary.h"

#include "sim/driver/api/entry.h"
#include "sim/driver/api/lifetime.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/lock.h"

/* True if all bits are in CUctx_flags, with at most one of the three scheduling bits. */
static bool flags_are_valid(unsigned int flags)
{
    unsigned int schedule = flags & CU_CTX_SCHED_MASK;

    return (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0 && (schedule & (schedule - 1)) == 0;
}

CUresult sim_primary_retain(struct sim_device *device, CUcontext *ret_ctx)
{
    CUresult result;

    while (device->primary != NULL && device->primary->ending) {
        sim_wait_progress(); /* another thread is ending the context */
    }
    if (device->primary == NULL || !device->primary->live) {
        result = sim_ctx_reinstate_primary(device);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    device->primary_refs++;
    *ret_ctx = device->primary;
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxRetain, SIM_INITIALIZED, (CUcontext * pctx, CUdevice dev))
{
    struct sim_device *device = sim_device_get(dev);

    if (pctx == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return device != NULL ? sim_primary_retain(device, pctx) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_primary_release(struct sim_device *device)
{
    if (device->primary_refs == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    device->primary_refs--;
    if (device->primary_refs == 0 && device->primary->live) {
        sim_ctx_end(device->primary);
    }
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxRelease, SIM_INITIALIZED, (CUdevice dev))
{
    struct sim_device *device = sim_device_get(dev);

    return device != NULL ? sim_primary_release(device) : CUDA_ERROR_INVALID_DEVICE;
}

SIM_API_SAME(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease);

/* cuda.h: a reset does not replace a release. Each retain still needs a release. */
SIM_API(cuDevicePrimaryCtxReset, SIM_INITIALIZED, (CUdevice dev))
{
    struct sim_device *device = sim_device_get(dev);

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (device->primary != NULL && device->primary->live) {
        sim_ctx_end(device->primary);
    }
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset);

SIM_API(cuDevicePrimaryCtxSetFlags, SIM_INITIALIZED, (CUdevice dev, unsigned int flags))
{
    struct sim_device *device = sim_device_get(dev);

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!flags_are_valid(flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    device->primary_flags = flags;
    if (device->primary != NULL && device->primary->live) {
        device->primary->flags = flags;
    }
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags);

SIM_API(cuDevicePrimaryCtxGetState, SIM_INITIALIZED,
        (CUdevice dev, unsigned int *flags, int *active))
{
    const struct sim_device *device = sim_device_get(dev);

    if (flags == NULL || active == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *flags = device->primary_flags;
    *active = device->primary != NULL && device->primary->live;
    return CUDA_SUCCESS;
}
