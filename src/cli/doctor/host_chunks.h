/* Finds the places where the driver can create chunks of host memory for a device.
 *
 * Each place is tried in a separate process, the command _host-chunks, because cuMemCreate kills
 * the process on some machines (driver/host_place.h). The preloaded object also starts this
 * command, when memory is short. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

struct spw_cli_host_chunks {
    bool sought;
    bool work;
    struct spw_cli_place place; /* the best place that works */
    char verdict[SPW_CLI_REPORT_CELL];
};

/* Returns the result for a device. The first call for a device searches; later calls return the
 * stored result. */
const struct spw_cli_host_chunks *spw_cli_host_chunks_find(const struct spw_cli_cuda *cuda,
                                                           CUdevice device);

/* Runs the command _host-chunks DRIVER ORDINAL TYPE ID, which tries one place. Prints the result in
 * words. Returns the exit code, an enum spw_host_answer. */
int spw_cli_host_chunks_child(int argc, char **argv);
