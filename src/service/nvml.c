#include "service/nvml.h"

#include "driver/dl.h"
#include "system/room.h"
#include "system/stack.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MOST = 64, STACK_LEAST = 32 << 10 };

/* As in nvml.h: nvmlMemory_t, and nvmlProcessInfo_t of the functions' second and third version. */
struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned int pid;
    unsigned long long bytes; /* all ones: not known */
    unsigned int instances[2];
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*find)(const char *bus, void **ret_device);
    int (*memory)(void *device, struct memory *ret_memory);
    int (*processes)(void *device, unsigned int *count, struct process *ret_processes);
};

static bool take(void *library, const char *name, void *ret_function)
{
    void *found = spw_driver_dl_symbol(library, name);

    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static bool take_all(void *library, struct nvml *nvml)
{
    memset(nvml, 0, sizeof(*nvml));
    if (!take(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes)) {
        (void)take(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->processes);
    }
    return take(library, "nvmlInit_v2", &nvml->init) &&
           take(library, "nvmlShutdown", &nvml->shutdown) &&
           take(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->find) &&
           take(library, "nvmlDeviceGetMemoryInfo", &nvml->memory);
}

static bool bus_of(const struct spw_device *device, char *ret_bus, size_t capacity)
{
    static const CUdevice_attribute asked[] = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                                               CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                               CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
    struct spw_driver *driver = spw_process_driver();
    int values[3];

    for (int i = 0; i < 3; i++) {
        if (driver->cuDeviceGetAttribute == NULL ||
            SPW_DRIVER_CALL(driver, device->ordinal, cuDeviceGetAttribute, &values[i], asked[i],
                            device->handle) != CUDA_SUCCESS) {
            return false;
        }
    }
    (void)snprintf(ret_bus, capacity, "%08X:%02X:%02X.0", (unsigned)values[0], (unsigned)values[1],
                   (unsigned)values[2]);
    return true;
}

static void add_processes(const struct nvml *nvml, void *handle, struct spw_nvml_usage *usage)
{
    struct process SPW_ROOM *processes = spw_room_take(PROCESSES_MOST * sizeof(*processes));
    unsigned int count = PROCESSES_MOST;

    if (processes == NULL || nvml->processes == NULL ||
        nvml->processes(handle, &count, processes) != 0) {
        return;
    }
    for (unsigned int i = 0; i < count && i < PROCESSES_MOST; i++) {
        bool reported = processes[i].bytes != ~0ULL;

        if (processes[i].pid == (unsigned int)getpid()) {
            usage->own_known = reported;
            usage->own = reported ? processes[i].bytes : 0;
        } else if (reported) {
            usage->others += processes[i].bytes;
        }
    }
}

static bool ask(const struct nvml *nvml, const struct spw_device *device,
                struct spw_nvml_usage *usage)
{
    struct memory memory;
    void *handle;
    char bus[32];

    if (!bus_of(device, bus, sizeof(bus)) || nvml->find(bus, &handle) != 0 ||
        nvml->memory(handle, &memory) != 0) {
        return false;
    }
    usage->total = memory.total;
    usage->used = memory.used;
    add_processes(nvml, handle, usage);
    return true;
}

bool spw_service_nvml_ask(const struct spw_device *device, struct spw_nvml_usage *ret_usage)
{
    /* It is not known how much stack the library needs. */
    void *library = spw_stack_left() < STACK_LEAST
                        ? NULL
                        : dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    struct nvml nvml;
    bool known = false;

    memset(ret_usage, 0, sizeof(*ret_usage));
    if (library == NULL) {
        return false;
    }
    if (take_all(library, &nvml) && nvml.init() == 0) {
        known = ask(&nvml, device, ret_usage);
        (void)nvml.shutdown();
    }
    (void)dlclose(library);
    return known;
}

bool spw_service_nvml_ask_own(const struct spw_device *device, struct spw_nvml_usage *ret_usage)
{
    return spw_service_nvml_ask(device, ret_usage) && ret_usage->own_known &&
           (spw_process_driver()->simulated == NULL ||
            ret_usage->total == device->ruled.total_bytes);
}
