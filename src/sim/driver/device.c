#include "sim/driver/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/driver/control.h"
#include "sim/driver/entry.h"
#include "sim/driver/fit.h"
#include "sim/driver/options.h"
#include "sim/driver/visible.h"

static struct sim_device devices[SIM_MAX_DEVICES];  /* by index; profile NULL: not yet set up */
static struct sim_device *visible[SIM_MAX_DEVICES]; /* by ordinal */
static int visible_count = -1;                      /* -1: not yet decided */
static size_t host_used_bytes;

static size_t total_bytes(const struct sim_profile *profile, const struct sim_options *options)
{
    size_t own = profile->memory_mib << 20;
    size_t wanted = sim_size_of(&options->memory, own);

    return wanted != 0 ? wanted : own;
}

/* The machine's device of that index, whether the process sees it or not; NULL if it has none. */
static struct sim_device *machine_device(int index)
{
    const struct sim_options *options = sim_options();
    struct sim_device *device;

    if (index < 0 || index >= (int)options->devices) {
        return NULL;
    }
    device = &devices[index];
    if (device->profile == NULL) {
        device->index = index;
        device->profile = sim_profile_find(options->profile);
        device->total_bytes = total_bytes(device->profile, options);
    }
    return device;
}

int sim_device_count(void)
{
    int indices[SIM_MAX_DEVICES];

    if (visible_count < 0) {
        visible_count = sim_visible_devices(getenv("CUDA_VISIBLE_DEVICES"),
                                            (int)sim_options()->devices, indices);
        for (int i = 0; i < visible_count; i++) {
            visible[i] = machine_device(indices[i]);
            visible[i]->ordinal = i;
        }
    }
    return visible_count;
}

struct sim_device *sim_device_get(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < sim_device_count() ? visible[ordinal] : NULL;
}

struct sim_device *sim_device_of_index(int index)
{
    for (int i = 0; i < sim_device_count(); i++) {
        if (visible[i]->index == index) {
            return visible[i];
        }
    }
    return NULL;
}

bool sim_device_can_access(const struct sim_device *device, const struct sim_device *owner)
{
    return device == owner || sim_options()->peers;
}

CUresult sim_budget_charge(struct sim_device *device, size_t bytes, enum sim_use use)
{
    size_t free_bytes = device->total_bytes - device->used_bytes;

    if (bytes > free_bytes) {
        sim_fit_lacked(device, bytes, bytes - free_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->used_bytes += bytes;
    sim_fit_used(device, use == SIM_USE_OWN ? (int64_t)bytes : 0);
    return CUDA_SUCCESS;
}

void sim_budget_refund(struct sim_device *device, size_t bytes, enum sim_use use)
{
    device->used_bytes -= bytes;
    sim_fit_used(device, use == SIM_USE_OWN ? -(int64_t)bytes : 0);
}

/* Host memory that may be locked. */
static size_t host_total_bytes(void)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    return sim_size_of(&sim_options()->host_memory, machine);
}

CUresult sim_host_budget_charge(size_t bytes)
{
    size_t free_bytes = host_total_bytes() - host_used_bytes;

    if (bytes > free_bytes) {
        sim_fit_lacked(NULL, bytes, bytes - free_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    host_used_bytes += bytes;
    return CUDA_SUCCESS;
}

void sim_host_budget_refund(size_t bytes)
{
    host_used_bytes -= bytes;
}

/* Bus numbers are arbitrary but stable; domain and device are 0. */
static int sim_device_pci_bus(const struct sim_device *device)
{
    return 0x10 + device->index;
}

static CUresult attribute(const struct sim_device *device, CUdevice_attribute attrib, int *ret)
{
    const struct sim_profile *profile = device->profile;
    const struct sim_options *options = sim_options();

    switch (attrib) {
#define SIM_ATTRIBUTE(name, value)                                                                 \
    case CU_DEVICE_ATTRIBUTE_##name:                                                               \
        *ret = (value);                                                                            \
        return CUDA_SUCCESS;
#include "sim/driver/attributes.def"
#undef SIM_ATTRIBUTE
    default:
        if (attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *ret = 0;
        return CUDA_SUCCESS;
    }
}

SIM_API(cuDeviceGet, SIM_INITIALIZED, (CUdevice * device, int ordinal), (device, ordinal))
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

SIM_API(cuDeviceGetCount, SIM_INITIALIZED, (int *count), (count))
{
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = sim_device_count();
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName, SIM_INITIALIZED, (char *name, int len, CUdevice dev), (name, len, dev))
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

static CUresult device_uuid(CUuuid *uuid, CUdevice dev)
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

SIM_API(cuDeviceGetUuid, SIM_INITIALIZED, (CUuuid * uuid, CUdevice dev), (uuid, dev))
{
    return device_uuid(uuid, dev);
}

SIM_API(cuDeviceGetUuid_v2, SIM_INITIALIZED, (CUuuid * uuid, CUdevice dev), (uuid, dev))
{
    return device_uuid(uuid, dev);
}

SIM_API(cuDeviceTotalMem_v2, SIM_INITIALIZED, (size_t * bytes, CUdevice dev), (bytes, dev))
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

SIM_API(cuDeviceGetAttribute, SIM_INITIALIZED, (int *pi, CUdevice_attribute attrib, CUdevice dev),
        (pi, attrib, dev))
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

SIM_API(cuDeviceComputeCapability, SIM_INITIALIZED, (int *major, int *minor, CUdevice dev),
        (major, minor, dev))
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

SIM_API(cuDeviceGetProperties, SIM_INITIALIZED, (CUdevprop * prop, CUdevice dev), (prop, dev))
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

SIM_API(cuDeviceGetPCIBusId, SIM_INITIALIZED, (char *pciBusId, int len, CUdevice dev),
        (pciBusId, len, dev))
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

SIM_API(cuDeviceGetByPCIBusId, SIM_INITIALIZED, (CUdevice * dev, const char *pciBusId),
        (dev, pciBusId))
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
        if (domain == 0 && slot == 0 && bus == (unsigned int)sim_device_pci_bus(visible[i])) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

SIM_API(cuDeviceCanAccessPeer, SIM_INITIALIZED,
        (int *canAccessPeer, CUdevice dev, CUdevice peerDev), (canAccessPeer, dev, peerDev))
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
        (int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice),
        (value, attrib, srcDevice, dstDevice))
{
    bool possible = sim_options()->peers;

    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* cuda.h: INVALID_DEVICE also when both are the same. */
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
        (size_t * maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev),
        (maxWidthInElements, format, numChannels, dev))
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
        (int *pi, CUexecAffinityType type, CUdevice dev), (pi, type, dev))
{
    if (pi == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *pi = 0; /* cuda.h: only under MPS */
    return CUDA_SUCCESS;
}

SIM_EXPORT int spillway_sim_device(int index, struct spillway_sim_device *ret_device)
{
    const struct sim_device *device;

    sim_lock();
    device = machine_device(index);
    if (device != NULL) {
        ret_device->name = device->profile->name;
        sim_uuid_of(index, ret_device->uuid);
        ret_device->pci_bus = sim_device_pci_bus(device);
        ret_device->pci_device_id = device->profile->pci_device;
        ret_device->major = device->profile->major;
        ret_device->minor = device->profile->minor;
        ret_device->total_bytes = device->total_bytes;
        ret_device->used_bytes = device->used_bytes;
    }
    sim_unlock();
    return device != NULL ? 0 : -1;
}
