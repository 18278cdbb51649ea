#include "cli/commands/list.h"
#include "cli/console/arguments.h"
#include "cli/console/messages.h"

#include "cli/doctor/tables.h"
#include "cli/launch/installation.h"
#include "cli/launch/preload.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: spillway doctor [--measure] [--json]\n\n"
    "Reports the CUDA driver and the devices, tests the memory calls that spillway needs,\n"
    "tests that spillway serves every entry point of the driver and the runtime, and lists\n"
    "settings that disable it.\n\n"
    "Without a device, it reports what is missing, and does the tests that need no device.\n\n"
    "  --measure   also measure memory calls, copies and kernels' reads (about a minute)\n"
    "  --json      print one JSON object instead of tables\n\n"
    "On the simulated GPU: spillway sim --no-pool -- spillway doctor\n\n"
    "The exit code is 0 when all is well, 1 when something is missing, 2 for bad usage.\n";

/* If libspillway.so is preloaded, restarts this command without it, to test the bare driver. */
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

static bool examine(const struct spw_cli_cuda *cuda, bool measured, struct spw_cli_report *report)
{
    bool well = spw_cli_doctor_devices(cuda, report);

    spw_cli_doctor_spill(cuda, report);
    spw_cli_doctor_host_limits(cuda, report);
    well = spw_cli_doctor_entry_points(report) && well;
    spw_cli_doctor_disabled(cuda, report);
    if (measured) {
        measure(cuda, report);
    }
    return well;
}

static void examine_library(const struct spw_cli_cuda *cuda, CUresult started,
                            struct spw_cli_report *report)
{
    spw_cli_doctor_without_device(cuda, started, report);
    spw_cli_doctor_entry_points(report);
    spw_cli_doctor_disabled(cuda, report);
}

int spw_cli_command_doctor(int argc, char **argv)
{
    bool measures = false, json = false;
    const struct spw_cli_option options[] = {
        {"measure", .given = &measures},
        {"json", .given = &json},
        {0},
    };
    int code = spw_cli_arguments_read(argc, argv, options, help, NULL);
    struct spw_cli_report report;
    struct spw_cli_cuda cuda;
    char reason[SPW_CLI_REPORT_CELL];
    CUresult started;
    bool well = false;

    if (code >= 0) {
        return code;
    }
    leave_spillway(argv);
    if (!spw_cli_cuda_load(&cuda, reason, sizeof(reason))) {
        spw_cli_complain(argv[0], "%s; spillway sim runs programs on a simulated GPU", reason);
        return SPW_CLI_EXIT_FINDINGS;
    }
    started = spw_cli_cuda_start(&cuda, reason, sizeof(reason));
    if (started != CUDA_SUCCESS) {
        spw_cli_complain(argv[0], "%s; spillway sim runs programs on a simulated GPU", reason);
    }
    spw_cli_report_init(&report, json);
    spw_cli_doctor_driver(&cuda, &report);
    spw_cli_doctor_functions(&cuda, &report);
    if (started == CUDA_SUCCESS) {
        well = examine(&cuda, measures, &report);
    } else {
        examine_library(&cuda, started, &report);
    }
    spw_cli_report_fini(&report);
    return well ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}
