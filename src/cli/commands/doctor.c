#include "cli/commands/list.h"
#include "cli/console/messages.h"

#include "common/nearest.h"
#include "cli/doctor/cuda_api.h"
#include "cli/doctor/bandwidth.h"
#include "cli/doctor/concurrency.h"
#include "cli/doctor/devices.h"
#include "cli/doctor/disabled.h"
#include "cli/doctor/entry_points.h"
#include "cli/doctor/vmm_cost.h"
#include "cli/doctor/kernels.h"
#include "cli/launch/installation.h"
#include "cli/launch/preload.h"
#include "cli/doctor/report.h"

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
        } else if (spw_cli_is_help(argv[i])) {
            flags.help = true;
        } else {
            nearest = spw_nearest(argv[i], 2, names, sizeof(names) / sizeof(*names));
            spw_cli_complain(argv[0], "%s is not an option (%s%s%s)", argv[i],
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

    if (spw_cli_preload_remove("libspillway.so") && spw_cli_installation_self(self)) {
        char *again[8] = {self};

        for (int i = 0; argv[i] != NULL && i < 6; i++) {
            again[i + 1] = argv[i];
        }
        execv(self, again);
    }
}

static void measure_kernels(const struct spw_cli_cuda *cuda, CUdevice device,
                            struct spw_cli_report *report)
{
    static const char *const columns[] = {"kernels", NULL};
    CUmodule module;
    CUresult result = cuda->cuModuleLoadData(&module, spw_cli_kernels);

    if (result != CUDA_SUCCESS) {
        spw_cli_report_table(report, "kernels", "With a kernel", columns);
        spw_cli_report_row(report, "not measured: cuModuleLoadData: %s",
                           spw_cli_cuda_error(cuda, result));
        return;
    }
    spw_cli_doctor_measure_concurrency(cuda, device, module, report);
    spw_cli_doctor_measure_reads(cuda, device, module, report);
    cuda->cuModuleUnload(module);
}

static void measure(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    CUcontext context;
    CUdevice device;

    if (cuda->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuda->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
        return;
    }
    cuda->cuCtxSetCurrent(context);
    spw_cli_doctor_measure_vmm(cuda, device, report);
    spw_cli_doctor_measure_copies(cuda, report);
    measure_kernels(cuda, device, report);
    cuda->cuCtxSetCurrent(NULL);
    cuda->cuDevicePrimaryCtxRelease_v2(device);
}

int spw_cli_command_doctor(int argc, char **argv)
{
    struct doctor_flags flags;
    struct spw_cli_report report;
    struct spw_cli_cuda cuda;
    char reason[SPW_CLI_REPORT_CELL];
    bool well;

    if (!parse(argc, argv, &flags)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (flags.help) {
        print_help();
        return SPW_CLI_EXIT_OK;
    }
    leave_spillway(argv);
    if (!spw_cli_cuda_open(&cuda, reason, sizeof(reason))) {
        spw_cli_complain(argv[0], "%s; spillway sim runs programs on a simulated GPU", reason);
        return SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_report_init(&report, flags.json);
    spw_cli_doctor_driver(&cuda, &report);
    well = spw_cli_doctor_devices(&cuda, &report);
    spw_cli_doctor_spill(&cuda, &report);
    well = spw_cli_doctor_entry_points(&report) && well;
    spw_cli_doctor_disabled(&cuda, &report);
    if (flags.measure) {
        measure(&cuda, &report);
    }
    spw_cli_report_fini(&report);
    return well ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}
