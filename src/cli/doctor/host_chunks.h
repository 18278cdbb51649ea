/* Finds places where the driver can make chunks of host memory for a device.
 *
 * Each place is tried in a process of its own, the command _host-chunks, since cuMemCreate kills
 * the process on some machines (driver/host_place.h). The preloaded object starts the same command
 * when memory is short. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

struct spw_cli_host_chunks {
    bool sought;
    bool work;
    struct spw_cli_place place; /* the best one that works */
    char verdict[SPW_CLI_REPORT_CELL];
};

/* Returns the result for a device; the first call for a device makes the search. */
const struct spw_cli_host_chunks *spw_cli_host_chunks_find(const struct spw_cli_cuda *cuda,
                                                           CUdevice device);

/* The command _host-chunks DRIVER ORDINAL TYPE ID: tries one place. Prints the result in words; the
 * exit code is an enum spw_host_answer. */
int spw_cli_host_chunks_child(int argc, char **argv);
