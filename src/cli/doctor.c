#include "cli/command.h"

#include "common/nearest.h"
#include "common/size.h"
#include "cli/cuda_api.h"
#include "cli/doctor_parts.h"
#include "cli/kernels.h"
#include "cli/locate.h"
#include "cli/preload.h"
#include "cli/report.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct doctor_flags {
    bool measure;
    bool json;
    bool help;
};

static void print_help(void)
{
    fputs(
        "usage: spillway doctor [--measure] [--json]\n\n"
        "Says which driver is here, whether every way into it leads through spillway, what the\n"
        "devices can do (tried, not asked), and what would make spillway stand aside.\n\n"
        "  --measure   also measure the cost of memory calls, copies and remote reads (a minute)\n"
        "  --json      one JSON object instead of tables\n\n"
        "On the simulated GPU: spillway sim --no-pool -- spillway doctor\n"
        "Ends with 0 when all is well, 1 when something is missing, 2 for bad usage.\n",
        stdout);
}

static bool parse(int argc, char **argv, struct doctor_flags *ret_flags)
{
    static const char *const names[] = {"--measure", "--json", "--help"};
    struct doctor_flags flags = {0};

    for (int i = 1; i < argc; i++) {
        const char *nearest;

        if (strcmp(argv[i], "--measure") == 0) {
            flags.measure = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            flags.json = true;
        } else if (spw_is_help(argv[i])) {
            flags.help = true;
        } else {
            nearest = spw_nearest(argv[i], 2, names, sizeof(names) / sizeof(*names));
            spw_complain(argv[0], "%s is not an option (%s%s%s)", argv[i],
                         nearest != NULL ? "did you mean " : "expected --measure, --json",
                         nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
            return false;
        }
    }
    *ret_flags = flags;
    return true;
}

/* The doctor must see the driver as it is: started under spillway, it starts itself anew. */
static void leave_spillway(char **argv)
{
    char self[PATH_MAX];

    if (spw_preload_remove("libspillway.so") && spw_locate_self(self)) {
        char *again[8] = {self};

        for (int i = 0; argv[i] != NULL && i < 6; i++) {
            again[i + 1] = argv[i];
        }
        execv(self, again);
    }
}

static void report_driver(const struct spw_cuda *cuda, struct spw_report *report)
{
    static const char *const columns[] = {"what", "found", NULL};
    struct link_map *map = NULL;
    int version = 0;
    int count = 0;

    dlinfo(cuda->library, RTLD_DI_LINKMAP, &map);
    cuda->cuDriverGetVersion(&version);
    cuda->cuDeviceGetCount(&count);
    spw_report_table(report, "driver", "Driver", columns);
    spw_report_row(report, "library\t%s", map != NULL ? map->l_name : "?");
    spw_report_row(report, "driver API\tCUDA %d.%d", version / 1000, version % 1000 / 10);
    spw_report_row(report, "simulated\t%s",
                   cuda->simulated ? "yes: times and bandwidths mean nothing" : "no");
    spw_report_row(report, "devices\t%d", count);
}

static bool report_device(const struct spw_cuda *cuda, int ordinal, struct spw_report *report)
{
    char name[128] = "?";
    char vmm[SPW_REPORT_CELL] = "no context";
    char host[SPW_REPORT_CELL] = "no context";
    char total_text[SPW_SIZE_TEXT];
    char free_text[SPW_SIZE_TEXT];
    char granule_text[SPW_SIZE_TEXT];
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
        granule = spw_place_granule(cuda, spw_place_device(device));
        works = spw_doctor_probe(cuda, device, spw_place_device(device), vmm, sizeof(vmm));
        spw_doctor_probe(cuda, device, spw_place_host(cuda, device), host, sizeof(host));
        cuda->cuCtxSetCurrent(NULL);
        cuda->cuDevicePrimaryCtxRelease_v2(device);
    }
    spw_report_row(report, "%d\t%s\t%s\t%s\t%s\t%s\t%s", ordinal, name,
                   spw_size_text(total, total_text), spw_size_text(free, free_text),
                   spw_size_text(granule, granule_text), vmm, host);
    return works;
}

static bool report_devices(const struct spw_cuda *cuda, struct spw_report *report)
{
    static const char *const columns[] = {
        "device", "name", "memory", "free", "granule", "device chunks", "host chunks", NULL,
    };
    bool all_work = true;
    int count = 0;

    cuda->cuDeviceGetCount(&count);
    spw_report_table(report, "devices", "Devices", columns);
    for (int i = 0; i < count; i++) {
        all_work = report_device(cuda, i, report) && all_work;
    }
    return all_work;
}

static void report_spill(const struct spw_cuda *cuda, int ordinal, struct spw_report *report)
{
    char chunks[SPW_REPORT_CELL] = "no context";
    char pinned[SPW_REPORT_CELL] = "no context";
    CUcontext context;
    CUdevice device;

    if (cuda->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
        cuda->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
        return;
    }
    cuda->cuCtxSetCurrent(context);
    if (spw_doctor_probe(cuda, device, spw_place_host(cuda, device), chunks, sizeof(chunks))) {
        spw_report_row(report, "%d\thost chunks: old blocks move there, and back\tnothing",
                       ordinal);
    } else if (spw_doctor_probe_pinned(cuda, pinned, sizeof(pinned))) {
        spw_report_row(report,
                       "%d\tpage-locked memory: new blocks only, for good\thost chunks (%s): a "
                       "driver of CUDA 12.2, not WSL, in a container the capability SYS_NICE",
                       ordinal, chunks);
    } else {
        spw_report_row(report, "%d\tnowhere\thost chunks (%s) and page-locked memory (%s)", ordinal,
                       chunks, pinned);
    }
    cuda->cuCtxSetCurrent(NULL);
    cuda->cuDevicePrimaryCtxRelease_v2(device);
}

static void report_spills(const struct spw_cuda *cuda, struct spw_report *report)
{
    static const char *const columns[] = {"device", "what does not fit goes to", "missing", NULL};
    int count = 0;

    cuda->cuDeviceGetCount(&count);
    spw_report_table(report, "spill", "When a device is full", columns);
    for (int i = 0; i < count; i++) {
        report_spill(cuda, i, report);
    }
}

static void measure_kernels(const struct spw_cuda *cuda, CUdevice device, struct spw_report *report)
{
    static const char *const columns[] = {"kernels", NULL};
    CUmodule module;
    CUresult result = cuda->cuModuleLoadData(&module, spw_kernels);

    if (result != CUDA_SUCCESS) {
        spw_report_table(report, "kernels", "With a kernel", columns);
        spw_report_row(report, "not measured: cuModuleLoadData: %s", spw_cuda_error(cuda, result));
        return;
    }
    spw_doctor_measure_beside(cuda, device, module, report);
    spw_doctor_measure_reads(cuda, device, module, report);
    cuda->cuModuleUnload(module);
}

static void measure(const struct spw_cuda *cuda, struct spw_report *report)
{
    CUcontext context;
    CUdevice device;

    if (cuda->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuda->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
        return;
    }
    cuda->cuCtxSetCurrent(context);
    spw_doctor_measure_vmm(cuda, device, report);
    spw_doctor_measure_copies(cuda, report);
    measure_kernels(cuda, device, report);
    cuda->cuCtxSetCurrent(NULL);
    cuda->cuDevicePrimaryCtxRelease_v2(device);
}

int spw_command_doctor(int argc, char **argv)
{
    struct doctor_flags flags;
    struct spw_report report;
    struct spw_cuda cuda;
    char reason[SPW_REPORT_CELL];
    bool well;

    if (!parse(argc, argv, &flags)) {
        return SPW_EXIT_USAGE;
    }
    if (flags.help) {
        print_help();
        return SPW_EXIT_OK;
    }
    leave_spillway(argv);
    if (!spw_cuda_open(&cuda, reason, sizeof(reason))) {
        spw_complain(argv[0], "%s; spillway sim runs programs on a simulated GPU", reason);
        return SPW_EXIT_FINDINGS;
    }
    spw_report_init(&report, flags.json);
    report_driver(&cuda, &report);
    well = report_devices(&cuda, &report);
    report_spills(&cuda, &report);
    well = spw_doctor_doors(&report) && well;
    spw_doctor_aside(&cuda, &report);
    if (flags.measure) {
        measure(&cuda, &report);
    }
    spw_report_fini(&report);
    return well ? SPW_EXIT_OK : SPW_EXIT_FINDINGS;
}
