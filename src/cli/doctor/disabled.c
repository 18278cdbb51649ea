#include "cli/doctor/tables.h"

#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const pytorch_names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};

struct findings {
    struct spw_cli_report *report;
    int count;
};

static void add(struct findings *findings, const char *cause, const char *effect)
{
    spw_cli_report_row(findings->report, "%s\t%s", cause, effect);
    findings->count++;
}

/* Spillway serves tensors only if PyTorch uses its own allocator. */
static void check_pytorch(struct findings *findings)
{
    for (size_t i = 0; i < sizeof(pytorch_names) / sizeof(*pytorch_names); i++) {
        const char *text = getenv(pytorch_names[i]);
        char cause[SPW_CLI_REPORT_CELL];

        if (text != NULL && strstr(text, "backend:cudaMallocAsync") != NULL) {
            snprintf(cause, sizeof(cause), "%s=%.128s", pytorch_names[i], text);
            add(findings, cause, "features that PyTorch lacks with this backend fail");
        }
    }
    if (getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL) {
        add(findings, "PYTORCH_NO_CUDA_MEMORY_CACHING",
            "segment mode: PyTorch allocates tensors without naming their stream");
    }
}

static void add_unknown(const char *name, void *context)
{
    char complaint[SPW_COMPLAINT_TEXT];

    spw_option_unknown(name, complaint, sizeof(complaint));
    add(context, complaint, "it is ignored");
}

static void check_options(struct findings *findings)
{
    spw_option_each_unknown(add_unknown, findings);
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const char *name = spw_option_row((enum spw_option)i)->name;
        const char *text = spw_option_environment(name);
        char complaint[SPW_COMPLAINT_TEXT];
        char cause[SPW_CLI_REPORT_CELL];
        struct spw_option_value value;

        if (text != NULL && *text != '\0' &&
            !spw_option_parse((enum spw_option)i, text, &value, complaint, sizeof(complaint))) {
            snprintf(cause, sizeof(cause), "%s=%.64s: %.120s", name, text, complaint);
            add(findings, cause, "the default is used");
        }
    }
    if (!spw_option_get(SPW_OPT_SPILLWAY, NULL, 0).on) {
        add(findings, "SPILLWAY is off", "spillway does nothing");
    }
    if (spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word == SPW_MODE_OBSERVE) {
        add(findings, "SPILLWAY_MODE=observe",
            "allocations go to the driver; spillway only counts them");
    }
}

static void check_machine(const struct spw_cli_cuda *cuda, struct findings *findings)
{
    int count = 0;

    if (access("/dev/dxg", F_OK) == 0) {
        add(findings, "WSL", "chunks of host memory and large page-locked buffers may fail");
    }
    cuda->cuDeviceGetCount(&count);
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        CUdevice device;

        if (cuda->cuDeviceGet(&device, i) == CUDA_SUCCESS &&
            cuda->cuDeviceGetName(name, sizeof(name), device) == CUDA_SUCCESS &&
            strstr(name, " MIG ") != NULL) {
            add(findings, name, "a MIG instance: its own memory only, no peer access");
        }
    }
}

static void check_preloaded(struct findings *findings)
{
    const char *present = getenv("LD_PRELOAD");
    char cause[SPW_CLI_REPORT_CELL];

    if (present != NULL && *present != '\0') {
        snprintf(cause, sizeof(cause), "LD_PRELOAD=%.200s", present);
        add(findings, cause, "other libraries are preloaded too; they are searched in this order");
    }
}

void spw_cli_doctor_disabled(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"cause", "effect", NULL};
    struct findings findings = {.report = report};

    spw_cli_report_table(report, "disabled", "What disables spillway, or parts of it", columns);
    check_options(&findings);
    check_pytorch(&findings);
    check_machine(cuda, &findings);
    if (!cuda->simulated) {
        check_preloaded(&findings);
    }
    if (findings.count == 0 && !report->json) {
        spw_cli_report_row(report, "nothing\t");
    }
}
