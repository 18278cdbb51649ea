/* Peer access between devices, and memory and events shared with other processes. */
#include <stddef.h>
#include <string.h>

#include "sim/runtime/entry.h"

static cudaError_t two_devices(int a, int b, CUdevice *ret_a, CUdevice *ret_b)
{
    cudaError_t error = simrt_device_handle(a, ret_a);

    return error != cudaSuccess ? error : simrt_device_handle(b, ret_b);
}

SIMRT_API(cudaDeviceCanAccessPeer, SIMRT_DRIVER, (int *ret_can, int ordinal, int peer),
          (ret_can, ordinal, peer))
{
    CUdevice device;
    CUdevice peer_device;
    cudaError_t error = two_devices(ordinal, peer, &device, &peer_device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceCanAccessPeer(ret_can, device, peer_device));
}

SIMRT_API(cudaDeviceGetP2PAttribute, SIMRT_DRIVER,
          (int *ret_value, enum cudaDeviceP2PAttr attribute, int source, int target),
          (ret_value, attribute, source, target))
{
    CUdevice source_device;
    CUdevice target_device;
    cudaError_t error = two_devices(source, target, &source_device, &target_device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceGetP2PAttribute(
        ret_value, (CUdevice_P2PAttribute)attribute, source_device, target_device));
}

SIMRT_API(cudaDeviceEnablePeerAccess, SIMRT_CONTEXT, (int peer, unsigned int flags), (peer, flags))
{
    CUcontext context;
    cudaError_t error = simrt_context_primary(peer, &context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuCtxEnablePeerAccess(context, flags));
}

SIMRT_API(cudaDeviceDisablePeerAccess, SIMRT_CONTEXT, (int peer), (peer))
{
    CUcontext context;
    cudaError_t error = simrt_context_primary(peer, &context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuCtxDisablePeerAccess(context));
}

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "handles are the same");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "handles are the same");

SIMRT_API(cudaIpcGetMemHandle, SIMRT_CONTEXT, (cudaIpcMemHandle_t * ret_handle, void *address),
          (ret_handle, address))
{
    return simrt_error(
        simrt_driver.cuIpcGetMemHandle((CUipcMemHandle *)ret_handle, (CUdeviceptr)address));
}

SIMRT_API(cudaIpcOpenMemHandle, SIMRT_CONTEXT,
          (void **ret_address, cudaIpcMemHandle_t handle, unsigned int flags),
          (ret_address, handle, flags))
{
    CUipcMemHandle driver_handle;

    memcpy(&driver_handle, &handle, sizeof(driver_handle));
    return simrt_error(
        simrt_driver.cuIpcOpenMemHandle((CUdeviceptr *)ret_address, driver_handle, flags));
}

SIMRT_API(cudaIpcCloseMemHandle, SIMRT_CONTEXT, (void *address), (address))
{
    return simrt_error(simrt_driver.cuIpcCloseMemHandle((CUdeviceptr)address));
}

SIMRT_API(cudaIpcGetEventHandle, SIMRT_CONTEXT,
          (cudaIpcEventHandle_t * ret_handle, cudaEvent_t event), (ret_handle, event))
{
    return simrt_error(simrt_driver.cuIpcGetEventHandle((CUipcEventHandle *)ret_handle, event));
}

SIMRT_API(cudaIpcOpenEventHandle, SIMRT_CONTEXT,
          (cudaEvent_t * ret_event, cudaIpcEventHandle_t handle), (ret_event, handle))
{
    CUipcEventHandle driver_handle;

    memcpy(&driver_handle, &handle, sizeof(driver_handle));
    return simrt_error(simrt_driver.cuIpcOpenEventHandle(ret_event, driver_handle));
}
