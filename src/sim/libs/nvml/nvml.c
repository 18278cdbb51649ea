/* The simulated NVML: identity and memory of the simulated devices.
 *
 * The simulated driver describes the devices. As programs expect of NVML, reading the devices does
 * not initialise CUDA.
 *
 * Locking: the table of devices is filled once and then read-only. */
#include <nvml.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "common/bounds.h"
#include "common/newer_cuda.h"
#include "sim/driver/core/control.h"
#include "sim/libs/common/driver.h"
#include "sim/libs/nvml/device.h"

static struct nvmlDevice_st devices[SPW_DEVICES_MAX];
static unsigned int device_count;
static atomic_int users; /* calls of nvmlInit without nvmlShutdown */
static int (*ask)(int ordinal, struct spillway_sim_device *ret_device);
static int (*list)(int index, struct spillway_sim_process *ret_list, int most);

enum { MOST_PROCESSES = 256 };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    *(void **)&list = sim_shim_simulator("spillway_sim_processes");
    *(void **)&ask = sim_shim_simulator("spillway_sim_device");
    while (ask != NULL && device_count < SPW_DEVICES_MAX &&
           ask((int)device_count, &devices[device_count].facts) == 0) {
        devices[device_count].index = device_count;
        device_count++;
    }
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)pthread_once(&once, load);
    if (ask == NULL || list == NULL) {
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    atomic_fetch_add(&users, 1);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORT_SAME(nvmlInit, nvmlInit_v2);

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    int before = atomic_load(&users);

    while (before > 0 && !atomic_compare_exchange_weak(&users, &before, before - 1)) {
    }
    return before > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* Like sim_nvml_check(), for a call without a handle. */
static nvmlReturn_t check(const void *answer)
{
    return atomic_load(&users) == 0 ? NVML_ERROR_UNINITIALIZED
           : answer == NULL         ? NVML_ERROR_INVALID_ARGUMENT
                                    : NVML_SUCCESS;
}

nvmlReturn_t sim_nvml_check(nvmlDevice_t device, const void *answer)
{
    nvmlReturn_t result = check(answer);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < device_count; i++) {
        if (device == &devices[i]) {
            return NVML_SUCCESS;
        }
    }
    return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    switch ((int)result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    default:
        return "Unknown Error";
    }
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion)
{
    /* Needs no nvmlInit. */
    if (cudaDriverVersion == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *cudaDriverVersion = SPW_NEWEST_CUDA;
    return NVML_SUCCESS;
}

EXPORT_SAME(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
    nvmlReturn_t result = check(deviceCount);

    if (result == NVML_SUCCESS) {
        *deviceCount = device_count;
    }
    return result;
}

EXPORT_SAME(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t result = check(device);

    if (result != NVML_SUCCESS || index >= device_count) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = &devices[index];
    return NVML_SUCCESS;
}

EXPORT_SAME(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
    nvmlReturn_t result = check(device);
    unsigned int domain = 0;
    unsigned int bus;
    unsigned int slot;

    if (result != NVML_SUCCESS) {
        return result;
    }
    if (pciBusId == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
        sscanf(pciBusId, "%x:%x", &bus, &slot) != 2) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned int i = 0; i < device_count; i++) {
        if (domain == 0 && slot == 0 && bus == (unsigned int)devices[i].facts.pci_bus) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT_SAME(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2);

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    nvmlReturn_t result = sim_nvml_check(device, uuid);
    const unsigned char *b;
    int written;

    if (result != NVML_SUCCESS) {
        return result;
    }
    b = device->facts.uuid;
    written = snprintf(uuid, length,
                       "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
                       b[12], b[13], b[14], b[15]);
    return written < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = check(device);

    if (result != NVML_SUCCESS || uuid == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned int i = 0; i < device_count; i++) {
        char own[NVML_DEVICE_UUID_BUFFER_SIZE];

        if (nvmlDeviceGetUUID(&devices[i], own, sizeof(own)) == NVML_SUCCESS &&
            strcmp(own, uuid) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t result = sim_nvml_check(device, index);

    if (result != NVML_SUCCESS) {
        return result;
    }
    *index = device->index;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    nvmlReturn_t result = sim_nvml_check(device, name);

    if (result != NVML_SUCCESS) {
        return result;
    }
    return snprintf(name, length, "%s", device->facts.name) < (int)length
               ? NVML_SUCCESS
               : NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    nvmlReturn_t result = sim_nvml_check(device, major);

    if (result != NVML_SUCCESS || minor == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    *major = device->facts.major;
    *minor = device->facts.minor;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = sim_nvml_check(device, pci);

    if (result != NVML_SUCCESS) {
        return result;
    }
    memset(pci, 0, sizeof(*pci));
    pci->bus = (unsigned int)device->facts.pci_bus;
    pci->pciDeviceId = (unsigned int)device->facts.pci_device_id << 16 | 0x10de;
    snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

EXPORT_SAME(nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo_v3);

/* Memory use changes, so it is read at each call. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = sim_nvml_check(device, memory);
    struct spillway_sim_device now;

    if (result != NVML_SUCCESS) {
        return result;
    }
    if (ask((int)device->index, &now) != 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (now.one_memory) {
        return NVML_ERROR_NOT_SUPPORTED; /* as on DGX Spark (leptonai/gpud#1170) */
    }
    memory->total = now.total_bytes;
    memory->used = now.used_bytes;
    memory->free = now.total_bytes - now.used_bytes;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t plain;
    nvmlReturn_t result =
        memory == NULL ? sim_nvml_check(device, NULL) : nvmlDeviceGetMemoryInfo(device, &plain);

    if (result == NVML_SUCCESS) {
        memory->total = plain.total;
        memory->reserved = 0;
        memory->free = plain.free;
        memory->used = plain.used;
    }
    return result;
}

/* The processes that hold memory of the device, at most MOST_PROCESSES of them. *infoCount is the
 * capacity of the caller's array on entry and the number of entries on return. */
static nvmlReturn_t running(nvmlDevice_t device, unsigned int *infoCount,
                            struct spillway_sim_process ret_list[MOST_PROCESSES])
{
    nvmlReturn_t result = sim_nvml_check(device, infoCount);
    unsigned int room;
    int count;

    if (result != NVML_SUCCESS) {
        return result;
    }
    count = list((int)device->index, ret_list, MOST_PROCESSES);
    room = *infoCount;
    *infoCount = (unsigned int)(count < MOST_PROCESSES ? count : MOST_PROCESSES);
    return room < *infoCount ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* The first version of the function. PyTorch calls it to report an out-of-memory error. */
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
                                                         unsigned int *infoCount,
                                                         nvmlProcessInfo_v1_t *infos)
{
    struct spillway_sim_process processes[MOST_PROCESSES];
    nvmlReturn_t result = running(device, infoCount, processes);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < *infoCount; i++) {
        infos[i] = (nvmlProcessInfo_v1_t){.pid = (unsigned int)processes[i].pid,
                                          .usedGpuMemory = processes[i].bytes};
    }
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                            unsigned int *infoCount,
                                                            nvmlProcessInfo_t *infos)
{
    struct spillway_sim_process processes[MOST_PROCESSES];
    nvmlReturn_t result = running(device, infoCount, processes);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < *infoCount; i++) {
        infos[i] = (nvmlProcessInfo_t){
            .pid = (unsigned int)processes[i].pid,
            .usedGpuMemory = processes[i].bytes,
            .gpuInstanceId = UINT_MAX, /* no MIG */
            .computeInstanceId = UINT_MAX,
        };
    }
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                            unsigned int *infoCount,
                                                            nvmlProcessInfo_v2_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, infoCount, infos);
}

/* There is no NVLink: devices reach each other over PCI Express. */
EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
                                           nvmlGpuP2PCapsIndex_t p2pIndex,
                                           nvmlGpuP2PStatus_t *p2pStatus)
{
    nvmlReturn_t result = sim_nvml_check(device1, p2pStatus);

    result = result == NVML_SUCCESS ? sim_nvml_check(device2, p2pStatus) : result;
    if (result != NVML_SUCCESS) {
        return result;
    }
    *p2pStatus =
        p2pIndex == NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_NOT_SUPPORTED : NVML_P2P_STATUS_OK;
    return NVML_SUCCESS;
}

/* Programs call these routinely. "Not supported" is a valid answer, so nothing is reported. */
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                        nvmlIntNvLinkDeviceType_t *type)
{
    nvmlReturn_t result = sim_nvml_check(device, type);

    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                        nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = sim_nvml_check(device, pci);

    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* The device has no fabric. Below compute capability 9 the function is not supported. The versions
 * of the structure differ only after the members that are set here. The low bits of the version are
 * the size of the caller's structure. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
                                                nvmlGpuFabricInfoV_t *gpuFabricInfo)
{
    nvmlReturn_t result = sim_nvml_check(device, gpuFabricInfo);
    unsigned int version;
    size_t size;

    if (result != NVML_SUCCESS) {
        return result;
    }
    version = gpuFabricInfo->version;
    size = version & 0xffffff;
    if (device->facts.major < 9) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (size < offsetof(nvmlGpuFabricInfoV_t, state) + sizeof(gpuFabricInfo->state)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    memset(gpuFabricInfo, 0, size < sizeof(*gpuFabricInfo) ? size : sizeof(*gpuFabricInfo));
    gpuFabricInfo->version = version;
    gpuFabricInfo->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
