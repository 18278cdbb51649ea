#include "cli/doctor/tables.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The rows of the table "open": an unknown property, and the command that tests it. */
static const char *const questions[][2] = {
    {"memory calls: chunks of device memory (cuMemCreate, cuMemMap, cuMemSetAccess)",
     "spillway doctor: Devices"},
    {"spilling: chunks of host memory on the device's NUMA node, or page-locked memory",
     "spillway doctor: When a device is full"},
    {"allocations and frees through each entry point, counted by the pool",
     "spillway doctor: Entry points"},
    {"times of memory calls, bandwidths, what waits for a kernel", "spillway doctor --measure"},
};

static void report_module(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    char library[SPW_CLI_VERSION_TEXT];
    char module[SPW_CLI_VERSION_TEXT];

    if (!spw_cli_doctor_module_version(module)) {
        spw_cli_report_row(report, "NVIDIA's kernel module is not loaded\t"
                                   "install it with the driver and load it (modprobe nvidia)");
    } else if (spw_cli_doctor_library_version(cuda, library) && strcmp(library, module) != 0) {
        spw_cli_report_row(report,
                           "the library is %s, the kernel module %s\t"
                           "reboot after an update of the driver; in a container use the "
                           "machine's library",
                           library, module);
    }
}

/* Reports missing or inaccessible device files, which the library opens. */
static void report_files(struct spw_cli_report *report)
{
    glob_t files = {0};

    if (glob("/dev/nvidia[0-9]*", 0, NULL, &files) != 0) {
        spw_cli_report_row(report, "there is no /dev/nvidia0\t"
                                   "in a container: start it with its GPUs (docker --gpus all)");
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        if (access(files.gl_pathv[i], R_OK | W_OK) != 0) {
            spw_cli_report_row(report,
                               "%.64s may not be opened\tgive this user read and write access",
                               files.gl_pathv[i]);
        }
    }
    globfree(&files);
}

void spw_cli_doctor_without_device(const struct spw_cli_cuda *cuda, CUresult result,
                                   struct spw_cli_report *report)
{
    static const char *const causes[] = {"missing", "what to do", NULL};
    static const char *const open_columns[] = {"not known without a device", "told by", NULL};
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    spw_cli_report_table(report, "missing", "Why there is no device", causes);
    spw_cli_report_row(report, "cuInit: %s\t%s", spw_cli_cuda_error(cuda, result),
                       result == CUDA_ERROR_NO_DEVICE ? "the driver finds no device; see below"
                                                      : "see below, and NVIDIA's documentation");
    if (visible != NULL) {
        spw_cli_report_row(report, "CUDA_VISIBLE_DEVICES=%.64s\tunset it, or name a device",
                           visible);
    }
    if (!cuda->simulated && access("/dev/dxg", F_OK) != 0) { /* exists on WSL */
        report_module(cuda, report);
        report_files(report);
    }
    spw_cli_report_table(report, "open", "Questions that need a device", open_columns);
    for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
        spw_cli_report_row(report, "%s\t%s", questions[i][0], questions[i][1]);
    }
}
