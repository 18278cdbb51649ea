/* Runs the command on the simulated GPU with simulated time: once with ample memory, then within
 * the budget. All runs are recorded. One thread; one series at a time. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/verdict/trial.h"

struct spw_cli_advise_replays {
    struct spw_cli_trials trials;
    char **arguments;
    char folder[32];       /* for the files below */
    char record[PATH_MAX]; /* the recording of the last run */
    char policy[PATH_MAX]; /* a file for the policy */
    char link[32];         /* SPILLWAY_SIM_LINK */
    unsigned count;
};

/* The result of a run. */
struct spw_cli_advise_run {
    int code;
    enum spw_cli_sim_outcome outcome;
    uint64_t half_ns;        /* simulated time of the second half of its kernels */
    uint64_t own_bytes;      /* most device memory of the driver itself: code, local memory */
    uint64_t host_bytes;     /* most bytes on the host at once */
    uint64_t spilled_bytes;  /* went to the host, in all: evicted, or new there */
    uint64_t promoted_bytes; /* moved back, in all */
};

/* `link`: bytes a nanosecond. False, after a line on stderr, when there is no folder for files. */
bool spw_cli_advise_replays_begin(struct spw_cli_advise_replays *replays, const char *command,
                                  char **arguments, uint64_t link);
void spw_cli_advise_replays_end(struct spw_cli_advise_replays *replays);

/* Runs the command with ample memory, and records which memory its calls use. False when the
 * command could not be started, or was interrupted. */
bool spw_cli_advise_replays_record(struct spw_cli_advise_replays *replays,
                                   struct spw_cli_advise_run *ret_run);

/* Runs the command on a device of `device_bytes`, and records the run. `policy`: a path, or the
 * name of an installed policy; NULL: none. `host_bytes`: the limit of host memory; UINT64_MAX:
 * none. */
bool spw_cli_advise_replays_run(struct spw_cli_advise_replays *replays, uint64_t device_bytes,
                                uint64_t host_bytes, const char *policy,
                                struct spw_cli_advise_run *ret_run);

/* True if a run ended well and no request was refused. */
bool spw_cli_advise_run_is_good(const struct spw_cli_advise_run *run);
