#include "cli/verdict/progress.h"

#include "cli/console/line.h"
#include "cli/launch/child.h"
#include "cli/verdict/sim_result.h"
#include "common/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { INTERVAL_SECONDS = 10 };

static time_t begin;

static uint64_t kernels(const struct spw_cli_sim_device *device)
{
    uint64_t launches = 0;

    for (int layout = 0; layout < SPW_LAYOUT_COUNT; layout++) {
        launches += device->launches[layout];
    }
    return launches;
}

static time_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void say_device(const struct spw_cli_sim_process *process, int ordinal)
{
    const struct spw_cli_sim_device *device = &process->devices[ordinal];
    struct spw_cli_line line = {""};

    spw_cli_line_add(&line, "%ld s: %s (pid %d) on device %d: ", (long)(now() - begin),
                     process->name, process->pid, ordinal);
    spw_cli_line_add_size(&line, device->used_bytes);
    spw_cli_line_add(&line, " of ");
    spw_cli_line_add_size(&line, device->total_bytes);
    spw_cli_line_add(&line, " in use, peak ");
    spw_cli_line_add_size(&line, device->used_peak_bytes);
    if (device->host_peak_bytes > 0) {
        spw_cli_line_add(&line, ", up to ");
        spw_cli_line_add_size(&line, device->host_peak_bytes);
        spw_cli_line_add(&line, " on the host");
    }
    spw_cli_line_add(&line, "; %" PRIu64 " allocations, %" PRIu64 " kernels", device->allocations,
                     kernels(device));
    fprintf(stderr, "spillway: %s\n", line.text);
}

static void say_all(void)
{
    struct spw_cli_sim_result result;

    spw_cli_sim_result_read(&result);
    for (size_t i = 0; i < result.count; i++) {
        for (int k = 0; k < result.processes[i].device_count; k++) {
            if (result.processes[i].devices[k].used) {
                say_device(&result.processes[i], k);
            }
        }
    }
    spw_cli_sim_result_fini(&result);
}

void spw_cli_progress_start(void)
{
    int wanted = spw_option_get(SPW_OPT_SPILLWAY_SIM_PROGRESS, NULL, 0).word;

    if (wanted == SPW_PROGRESS_ON || (wanted == SPW_PROGRESS_AUTO && isatty(STDERR_FILENO))) {
        begin = now();
        spw_cli_launch_watch(INTERVAL_SECONDS, say_all);
    }
}
