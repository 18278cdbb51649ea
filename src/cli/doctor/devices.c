#include "cli/doctor/tables.h"

#include "cli/console/messages.h"
#include "cli/doctor/host_chunks.h"
#include "cli/launch/installation.h"
#include "common/reserve.h"
#include "driver/host_place.h"
#include "driver/one_memory.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *library_path(const struct spw_cli_cuda *cuda)
{
    struct link_map *map = NULL;

    return dlinfo(cuda->library, RTLD_DI_LINKMAP, &map) == 0 && map != NULL ? map->l_name : "?";
}

bool spw_cli_doctor_library_version(const struct spw_cli_cuda *cuda,
                                    char ret_text[SPW_CLI_VERSION_TEXT])
{
    static const char name[] = "/libcuda.so.";
    char path[PATH_MAX];
    const char *found = realpath(library_path(cuda), path) != NULL ? strstr(path, name) : NULL;
    bool known = found != NULL && strchr(found + strlen(name), '.') != NULL;

    snprintf(ret_text, SPW_CLI_VERSION_TEXT, "%.60s", known ? found + strlen(name) : "not known");
    return known;
}

bool spw_cli_doctor_module_version(char ret_text[SPW_CLI_VERSION_TEXT])
{
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    char line[256] = "";
    const char *begin;
    size_t length = 0;

    if (file != NULL) {
        (void)!fgets(line, sizeof(line), file);
        fclose(file);
    }
    /* The version is the first word that begins with a digit. The name of the architecture (x86_64)
     * also has digits and comes earlier in the line. */
    begin = strpbrk(line, " ");
    while (begin != NULL && (begin[1] < '0' || begin[1] > '9')) {
        begin = strpbrk(begin + 1, " ");
    }
    length = begin == NULL ? 0 : strspn(begin + 1, "0123456789.");
    if (length == 0 || length >= SPW_CLI_VERSION_TEXT) {
        snprintf(ret_text, SPW_CLI_VERSION_TEXT, "not known");
        return false;
    }
    snprintf(ret_text, SPW_CLI_VERSION_TEXT, "%.*s", (int)length, begin + 1);
    return true;
}

void spw_cli_doctor_driver(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"what", "found", NULL};
    char library[SPW_CLI_VERSION_TEXT];
    char module[SPW_CLI_VERSION_TEXT];
    int version = 0;
    int count = 0;

    (void)spw_cli_doctor_library_version(cuda, library);
    (void)spw_cli_doctor_module_version(module);
    cuda->cuDriverGetVersion(&version);
    cuda->cuDeviceGetCount(&count);
    spw_cli_report_table(report, "driver", "Driver", columns);
    spw_cli_report_row(report, "library\t%s", library_path(cuda));
    spw_cli_report_row(report, "library's version\t%s", library);
    spw_cli_report_row(report, "kernel module\t%s", module);
    spw_cli_report_row(report, "driver API\tCUDA %d.%d", version / 1000, version % 1000 / 10);
    spw_cli_report_row(report, "simulated\t%s",
                       cuda->simulated ? "yes (ignore times and bandwidths)" : "no");
    spw_cli_report_row(report, "devices\t%d", count);
}

static bool report_device(const struct spw_cli_cuda *cuda, int ordinal,
                          struct spw_cli_report *report)
{
    char name[128] = "?";
    char vmm[SPW_CLI_REPORT_CELL] = "no context";
    size_t granule = 0;
    size_t total = 0;
    size_t free = 0;
    CUcontext context;
    CUdevice device;
    bool works = false;

    if (cuda->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS) {
        return false;
    }
    cuda->cuDeviceGetName(name, sizeof(name), device);
    if (cuda->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS) {
        cuda->cuCtxSetCurrent(context);
        cuda->cuMemGetInfo_v2(&free, &total);
        granule = spw_cli_place_granule(cuda, spw_cli_place_device(device));
        works = spw_cli_doctor_probe(cuda, device, spw_cli_place_device(device), vmm, sizeof(vmm));
        cuda->cuCtxSetCurrent(NULL);
        cuda->cuDevicePrimaryCtxRelease_v2(device);
    }
    spw_cli_report_row(report, "%d\t%s\t%s\t%s\t%s\t%s\t%s", ordinal, name, spw_cli_size(total),
                       spw_cli_size(free), spw_cli_size(granule), vmm,
                       spw_cli_host_chunks_find(cuda, device)->verdict);
    return works;
}

bool spw_cli_doctor_devices(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {
        "device", "name", "memory", "free", "granule", "device chunks", "host chunks", NULL,
    };
    bool all_work = true;
    int count = 0;

    cuda->cuDeviceGetCount(&count);
    spw_cli_report_table(report, "devices", "Devices", columns);
    for (int i = 0; i < count; i++) {
        all_work = report_device(cuda, i, report) && all_work;
    }
    return all_work;
}

/* Returns the name of the missing part that prevents moves although host chunks work, or
 * "nothing". */
static const char *missing_for_moves(char *object, size_t capacity)
{
    char command[PATH_MAX];

    if (!spw_cli_installation_find("doctor", "libspillway.so", object) ||
        spw_driver_host_command(dirname(object), command, sizeof(command)) == NULL) {
        snprintf(object, capacity,
                 "the command `spillway` beside libspillway.so, which tries them: "
                 "without it, page-locked memory for new blocks only");
        return object;
    }
    return "nothing";
}

/* Returns true if the driver records events of a context, as moves need. `context` must be
 * current. */
static bool records_contexts(const struct spw_cli_cuda *cuda, CUcontext context)
{
    __typeof__(cuCtxRecordEvent) *record;
    __typeof__(cuEventCreate) *create;
    __typeof__(cuEventDestroy_v2) *destroy;
    CUevent event;
    bool records;

    *(void **)&record = dlsym(cuda->library, "cuCtxRecordEvent");
    *(void **)&create = dlsym(cuda->library, "cuEventCreate");
    *(void **)&destroy = dlsym(cuda->library, "cuEventDestroy_v2");
    if (record == NULL || create == NULL || destroy == NULL ||
        create(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        return false;
    }
    records = record(context, event) == CUDA_SUCCESS;
    destroy(event);
    return records;
}

/* Reports the memory that a device shares with the host. Returns false if it has memory of its
 * own. */
static bool report_one_memory(const struct spw_cli_cuda *cuda, CUdevice device, int ordinal,
                              struct spw_cli_report *report)
{
    uint64_t total =
        spw_driver_one_memory_of(cuda->cuDeviceGetAttribute, cuda->cuDeviceTotalMem_v2, device);

    if (total == 0) {
        return false;
    }
    spw_cli_report_row(report,
                       "%d\tnowhere: device and host share one memory of %s, of which %s stay free "
                       "(--memory-reserve)\tnothing",
                       ordinal, spw_cli_size(total), spw_cli_size(spw_reserve_of(total)));
    return true;
}

static void report_spill(const struct spw_cli_cuda *cuda, int ordinal,
                         struct spw_cli_report *report)
{
    const struct spw_cli_host_chunks *chunks;
    char object[PATH_MAX];
    char pinned[SPW_CLI_REPORT_CELL] = "no context";
    CUcontext context;
    CUdevice device;

    if (cuda->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
        report_one_memory(cuda, device, ordinal, report)) {
        return;
    }
    if (cuda->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
        return;
    }
    cuda->cuCtxSetCurrent(context);
    chunks = spw_cli_host_chunks_find(cuda, device);
    if (chunks->work && !records_contexts(cuda, context)) {
        spw_cli_report_row(
            report,
            "%d\thost chunks: new blocks only, which stay there\tcuCtxRecordEvent: a "
            "driver of CUDA 12.5 or later",
            ordinal);
    } else if (chunks->work) {
        spw_cli_report_row(report, "%d\thost chunks: blocks move there and back\t%s", ordinal,
                           missing_for_moves(object, sizeof(object)));
    } else if (spw_cli_doctor_probe_pinned(cuda, pinned, sizeof(pinned))) {
        spw_cli_report_row(
            report,
            "%d\tpage-locked memory: new blocks only, which stay there\thost chunks (%s): a "
            "driver of CUDA 12.2 or later, not WSL, and in containers the capability "
            "SYS_NICE",
            ordinal, chunks->verdict);
    } else {
        spw_cli_report_row(report, "%d\tnowhere\thost chunks (%s) and page-locked memory (%s)",
                           ordinal, chunks->verdict, pinned);
    }
    cuda->cuCtxSetCurrent(NULL);
    cuda->cuDevicePrimaryCtxRelease_v2(device);
}

void spw_cli_doctor_spill(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"device", "spills to", "missing", NULL};
    int count = 0;

    cuda->cuDeviceGetCount(&count);
    spw_cli_report_table(report, "spill", "When a device is full", columns);
    for (int i = 0; i < count; i++) {
        report_spill(cuda, i, report);
    }
}
