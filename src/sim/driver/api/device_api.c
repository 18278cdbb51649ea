#include <stdio.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/device.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/core/visible.h"

static CUresult attribute(const struct sim_device *device, CUdevice_attribute attrib, int *ret)
{
    const struct spw_gpu_profile *profile = device->profile;
    const struct sim_options *options = sim_options();

    switch ((int)attrib) { /* older headers lack some of the enumerators */
#define SIM_ATTRIBUTE(name, value)                                                                 \
    case CU_DEVICE_ATTRIBUTE_##name:                                                               \
        *ret = (value);                                                                            \
        return CUDA_SUCCESS;
#include "sim/driver/api/attributes.def"
#undef SIM_ATTRIBUTE
    default:
        if (attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *ret = 0;
        return CUDA_SUCCESS;
    }
}

SIM_API(cuDeviceGet, SIM_INITIALIZED, (CUdevice * device, int ordinal))
{
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_get(ordinal) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetCount, SIM_INITIALIZED, (int *count))
{
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = sim_device_count();
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName, SIM_INITIALIZED, (char *name, int len, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    if (name == NULL || len <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    snprintf(name, (size_t)len, "%s", device->profile->name);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetUuid, SIM_INITIALIZED, (CUuuid * uuid, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    if (uuid == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    sim_uuid_of(device->index, (unsigned char *)uuid->bytes);
    return CUDA_SUCCESS;
}

SIM_API_SAME(cuDeviceGetUuid_v2, cuDeviceGetUuid);

SIM_API(cuDeviceTotalMem_v2, SIM_INITIALIZED, (size_t * bytes, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    if (bytes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *bytes = device->total_bytes;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetAttribute, SIM_INITIALIZED, (int *pi, CUdevice_attribute attrib, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    if (pi == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return attribute(device, attrib, pi);
}

SIM_API(cuDeviceComputeCapability, SIM_INITIALIZED, (int *major, int *minor, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    if (major == NULL || minor == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *major = device->profile->major;
    *minor = device->profile->minor;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetProperties, SIM_INITIALIZED, (CUdevprop * prop, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    if (prop == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *prop = (CUdevprop){
        .maxThreadsPerBlock = 1024,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {2147483647, 65535, 65535},
        .sharedMemPerBlock = 49152,
        .totalConstantMemory = 65536,
        .SIMDWidth = 32,
        .memPitch = 2147483647,
        .regsPerBlock = 65536,
        .clockRate = device->profile->clock_khz,
        .textureAlign = 512,
    };
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetPCIBusId, SIM_INITIALIZED, (char *pciBusId, int len, CUdevice dev))
{
    const struct sim_device *device = sim_device_get(dev);

    /* cuda.h: at least 13 characters with the terminator. */
    if (pciBusId == NULL || len < 13) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", (unsigned int)sim_device_pci_bus(device));
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetByPCIBusId, SIM_INITIALIZED, (CUdevice * dev, const char *pciBusId))
{
    unsigned int domain = 0, bus, slot;

    if (dev == NULL || pciBusId == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* cuda.h: [domain]:[bus]:[device].[function], [domain]:[bus]:[device] or
     * [bus]:[device].[function], in hexadecimal. */
    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(pciBusId, "%x:%x", &bus, &slot) != 2) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (int i = 0; i < sim_device_count(); i++) {
        if (domain == 0 && slot == 0 &&
            bus == (unsigned int)sim_device_pci_bus(sim_device_get(i))) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

SIM_API(cuDeviceCanAccessPeer, SIM_INITIALIZED,
        (int *canAccessPeer, CUdevice dev, CUdevice peerDev))
{
    if (canAccessPeer == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_get(dev) == NULL || sim_device_get(peerDev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *canAccessPeer = dev != peerDev && sim_options()->peers;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetP2PAttribute, SIM_INITIALIZED,
        (int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice))
{
    bool possible = sim_options()->peers;

    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* cuda.h: INVALID_DEVICE also if both devices are the same. */
    if (sim_device_get(srcDevice) == NULL || sim_device_get(dstDevice) == NULL ||
        srcDevice == dstDevice) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    switch (attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = possible;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuDeviceGetTexture1DLinearMaxWidth, SIM_INITIALIZED,
        (size_t * maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev))
{
    if (maxWidthInElements == NULL || numChannels == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *maxWidthInElements = (size_t)268435456;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetExecAffinitySupport, SIM_INITIALIZED,
        (int *pi, CUexecAffinityType type, CUdevice dev))
{
    if (pi == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *pi = 0; /* cuda.h: supported only under MPS */
    return CUDA_SUCCESS;
}
