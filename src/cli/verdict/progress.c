#include "cli/verdict/outputs.h"

#include "cli/console/messages.h"
#include "cli/launch/child.h"
#include "common/options.h"
#include "system/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { INTERVAL_SECONDS = 10 };

static uint64_t begin; /* in nanoseconds */

static uint64_t kernels(const struct spw_cli_sim_device *device)
{
    uint64_t launches = 0;

    for (int layout = 0; layout < SPW_LAYOUT_COUNT; layout++) {
        launches += device->launches[layout];
    }
    return launches;
}

static void say_device(const struct spw_cli_sim_result *result,
                       const struct spw_cli_sim_device *device)
{
    int ordinal;
    const struct spw_cli_sim_process *process = spw_cli_sim_process_of(result, device, &ordinal);
    struct spw_cli_line line = {""};

    spw_cli_line_add(&line, "%ld s: %s (pid %d) on device %d: %s of %s in use, peak %s",
                     (long)((spw_clock_ns() - begin) / 1000000000), process->name, process->pid,
                     ordinal, spw_cli_size(device->used_bytes), spw_cli_size(device->total_bytes),
                     spw_cli_size(device->used_peak_bytes));
    if (device->host_peak_bytes > 0) {
        spw_cli_line_add(&line, ", up to %s on the host", spw_cli_size(device->host_peak_bytes));
    }
    spw_cli_line_add(&line, "; %" PRIu64 " allocations, %" PRIu64 " kernels", device->allocations,
                     kernels(device));
    fprintf(stderr, "spillway: %s\n", line.text);
}

static void say_all(void)
{
    const struct spw_cli_sim_device *device = NULL;
    struct spw_cli_sim_result result;

    spw_cli_sim_result_read(/* real */ false, &result);
    while ((device = spw_cli_sim_next(&result, device)) != NULL) {
        if (device->used) {
            say_device(&result, device);
        }
    }
    spw_cli_sim_result_fini(&result);
}

void spw_cli_progress_start(void)
{
    int wanted = spw_option_get(SPW_OPT_SPILLWAY_SIM_PROGRESS, NULL, 0).word;

    if (wanted == SPW_PROGRESS_ON || (wanted == SPW_PROGRESS_AUTO && isatty(STDERR_FILENO))) {
        begin = spw_clock_ns();
        spw_cli_launch_watch(INTERVAL_SECONDS, say_all);
    }
}
