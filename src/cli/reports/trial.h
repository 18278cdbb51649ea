/* Runs of a command on simulated devices, one after the other, each with settings of its own. The
 * environment is this process's, so one series at a time. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/reports/sim_result.h"

/* Prepares the environment for a run on the simulated GPU, with the pool or without it. False, with
 * one line of `command` on stderr, when a library is missing. */
typedef bool spw_cli_prepare(const char *command, bool with_pool);

/* Variables that may differ between runs. */
enum { SPW_CLI_TRIAL_VARIABLES = 16 };

enum { SPW_CLI_TRIAL_LINE = 240 };

/* A series of runs. */
struct spw_cli_trials {
    const char *command; /* for messages */
    spw_cli_prepare *prepare;
    char *values[SPW_CLI_TRIAL_VARIABLES]; /* as the user set them; NULL: not set */
    int interrupt; /* the signal by which the user ended a run: start no more; 0: none */
    char last_line[SPW_CLI_TRIAL_LINE]; /* of the last silent run on stderr, fit for a terminal */
};

/* One variable of a run, which must be one of those that may differ. */
struct spw_cli_setting {
    const char *name;
    const char *value; /* NULL: not set */
};

/* One run: what is not set is as the user set it. */
struct spw_cli_trial {
    char **arguments;
    bool with_pool;
    bool silent; /* the program's output is not shown */
    const struct spw_cli_setting *settings;
    size_t setting_count;
};

/* Begins a series; remembers the variables until spw_cli_trials_end. */
void spw_cli_trials_begin(struct spw_cli_trials *trials, const char *command,
                          spw_cli_prepare *prepare);
void spw_cli_trials_end(struct spw_cli_trials *trials);

/* Runs the command. False when it could not be started. *ret_code is its exit code. The caller
 * frees *ret_result with spw_cli_sim_result_fini, in either case. */
bool spw_cli_trials_run(struct spw_cli_trials *trials, const struct spw_cli_trial *trial,
                        struct spw_cli_sim_result *ret_result, int *ret_code);
