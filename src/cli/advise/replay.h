/* Runs the command on the simulated GPU with simulated time, first with ample memory and then
 * within the budget. All runs are recorded. One thread; one series of runs at a time. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/verdict/trial.h"

struct spw_cli_advise_replays {
    struct spw_cli_trials trials;
    char **arguments;
    char folder[32];       /* folder of the files below */
    char ample[PATH_MAX];  /* the recording of the run with ample memory */
    char record[PATH_MAX]; /* the recording of the last run within the budget */
    char policy[PATH_MAX]; /* path of the file for the policy */
    char link[32];         /* SPILLWAY_SIM_LINK */
    unsigned total;        /* expected number of runs */
};

/* The result of a run. */
struct spw_cli_advise_run {
    int code;
    enum spw_cli_sim_outcome outcome;
    uint64_t half_ns[SPW_CLI_SIM_HALF]; /* as in verdict/sim_result.h */
    unsigned half_count;
    uint64_t own_bytes;      /* highest device memory of the driver itself: code, local memory */
    uint64_t host_bytes;     /* highest bytes on the host */
    uint64_t spilled_bytes;  /* total that went to the host: evicted, or allocated there */
    uint64_t promoted_bytes; /* total moved back */
};

/* Reads the figures of a run from its main device. Sets the code and the outcome to 0. */
void spw_cli_advise_run_read(const struct spw_cli_sim_device *device,
                             struct spw_cli_advise_run *ret_run);

/* Begins a series of runs. `link` is in bytes per nanosecond. If no folder for the files can be
 * created, writes a line to stderr and returns false. */
bool spw_cli_advise_replays_begin(struct spw_cli_advise_replays *replays, const char *command,
                                  char **arguments, uint64_t link);
void spw_cli_advise_replays_end(struct spw_cli_advise_replays *replays);

/* Runs the command with ample memory, and records which memory the command's calls use. Returns
 * false if the command could not be started or was interrupted. */
bool spw_cli_advise_replays_record(struct spw_cli_advise_replays *replays,
                                   struct spw_cli_advise_run *ret_run);

/* Runs the command on a device with `device_bytes` of memory, and records the run. `policy` is a
 * path or the name of an installed policy; NULL: no policy. `what_rules` describes the rules in
 * replays->policy, for the lines of progress. `host_bytes` is the limit of host memory; UINT64_MAX:
 * no limit. Returns false if the command could not be started or was interrupted. */
bool spw_cli_advise_replays_run(struct spw_cli_advise_replays *replays, uint64_t device_bytes,
                                uint64_t host_bytes, const char *policy, const char *what_rules,
                                struct spw_cli_advise_run *ret_run);

/* Returns the simulated time of a step, if the second half of the run has `steps` steps. The result
 * is the median, because a single step may be longer, for example when the pool rearranges blocks.
 * Returns 0 if the time is not known. */
uint64_t spw_cli_advise_run_step_ns(const struct spw_cli_advise_run *run, double steps);

/* Returns true if a run succeeded and no request for memory failed. */
bool spw_cli_advise_run_is_good(const struct spw_cli_advise_run *run);
