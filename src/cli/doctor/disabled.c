#include "cli/doctor/disabled.h"

#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const pytorch_names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};

struct aside {
    struct spw_cli_report *report;
    int count;
};

static void add(struct aside *aside, const char *cause, const char *effect)
{
    spw_cli_report_row(aside->report, "%s\t%s", cause, effect);
    aside->count++;
}

static void check_pytorch(struct aside *aside)
{
    for (size_t i = 0; i < sizeof(pytorch_names) / sizeof(*pytorch_names); i++) {
        const char *text = getenv(pytorch_names[i]);
        char cause[SPW_CLI_REPORT_CELL];

        if (text == NULL || strstr(text, "backend:cudaMallocAsync") != NULL) {
            continue;
        }
        snprintf(cause, sizeof(cause), "%s=%.128s", pytorch_names[i], text);
        add(aside, cause,
            strcasestr(text, "expandable_segments:true") != NULL
                ? "segment mode: PyTorch maps its own memory, which is counted and limited"
                : "segment mode: PyTorch keeps its own cache, spillway serves its segments");
    }
    if (getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL) {
        add(aside, "PYTORCH_NO_CUDA_MEMORY_CACHING",
            "PyTorch allocates every tensor without its stream");
    }
}

static void add_unknown(const char *name, void *context)
{
    char complaint[SPW_COMPLAINT_TEXT];

    spw_option_unknown(name, complaint, sizeof(complaint));
    add(context, complaint, "it is ignored");
}

static void check_options(struct aside *aside)
{
    spw_options_each_unknown(add_unknown, aside);
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const char *name = spw_option_row((enum spw_option)i)->name;
        const char *text = spw_environment(name);
        char complaint[SPW_COMPLAINT_TEXT];
        char cause[SPW_CLI_REPORT_CELL];
        struct spw_option_value value;

        if (text != NULL && *text != '\0' &&
            !spw_option_parse((enum spw_option)i, text, &value, complaint, sizeof(complaint))) {
            snprintf(cause, sizeof(cause), "%s=%.64s: %.120s", name, text, complaint);
            add(aside, cause, "the default is used");
        }
    }
    if (!spw_option_get(SPW_OPT_SPILLWAY, NULL, 0).on) {
        add(aside, "SPILLWAY is off", "spillway does nothing");
    }
    if (spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word == SPW_MODE_OBSERVE) {
        add(aside, "SPILLWAY_MODE=observe", "everything passes to the driver, only counted");
    }
}

static void check_machine(const struct spw_cli_cuda *cuda, struct aside *aside)
{
    int count = 0;

    if (access("/dev/dxg", F_OK) == 0) {
        add(aside, "WSL", "host chunks and large pinned buffers may be refused");
    }
    cuda->cuDeviceGetCount(&count);
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        CUdevice device;

        if (cuda->cuDeviceGet(&device, i) == CUDA_SUCCESS &&
            cuda->cuDeviceGetName(name, sizeof(name), device) == CUDA_SUCCESS &&
            strstr(name, " MIG ") != NULL) {
            add(aside, name, "a MIG slice: its own memory only, no peer access");
        }
    }
}

static void check_neighbours(struct aside *aside)
{
    const char *present = getenv("LD_PRELOAD");
    char cause[SPW_CLI_REPORT_CELL];

    if (present != NULL && *present != '\0') {
        snprintf(cause, sizeof(cause), "LD_PRELOAD=%.200s", present);
        add(aside, cause, "another object stands in front as well; they are asked in this order");
    }
}

void spw_cli_doctor_disabled(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"cause", "effect", NULL};
    struct aside aside = {.report = report};

    spw_cli_report_table(report, "stands_aside", "What would make spillway stand aside", columns);
    check_options(&aside);
    check_pytorch(&aside);
    check_machine(cuda, &aside);
    if (!cuda->simulated) {
        check_neighbours(&aside);
    }
    if (aside.count == 0 && !report->json) {
        spw_cli_report_row(report, "nothing\t");
    }
}
