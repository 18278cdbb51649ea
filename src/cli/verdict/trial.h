/* Runs a command on simulated devices, one run after the other, each with its own settings. One
 * series at a time, since the runs change this process's environment. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/verdict/sim_result.h"

/* Prepares the environment for a run on the simulated GPU, with the pool or without it. False,
 * after a line on stderr that names `command`, when a library is missing. */
typedef bool spw_cli_prepare(const char *command, bool with_pool);

/* Variables that may differ between runs. */
enum { SPW_CLI_TRIAL_VARIABLES = 16 };

enum { SPW_CLI_TRIAL_LINE = 240 };

/* A series of runs. */
struct spw_cli_trials {
    const char *command; /* for messages */
    spw_cli_prepare *prepare;
    char *values[SPW_CLI_TRIAL_VARIABLES]; /* the user's values; NULL: not set */
    int interrupt;                         /* the user's signal, which ends the series; 0: none */
    char last_line[SPW_CLI_TRIAL_LINE]; /* of stderr in the last silent run; safe for a terminal */
};

/* A variable of a run, from the list in trial.c. */
struct spw_cli_setting {
    const char *name;
    const char *value; /* NULL: not set */
};

/* One run. Variables of the list that are not in `settings` have the user's values. */
struct spw_cli_trial {
    char **arguments;
    bool with_pool;
    bool silent; /* the program's output is not shown */
    const struct spw_cli_setting *settings;
    size_t setting_count;
};

/* Begins a series, and keeps the user's values until spw_cli_trials_end. */
void spw_cli_trials_begin(struct spw_cli_trials *trials, const char *command,
                          spw_cli_prepare *prepare);
void spw_cli_trials_end(struct spw_cli_trials *trials);

/* Runs the command. False when it could not be started. *ret_code is its exit code. The caller
 * frees *ret_result with spw_cli_sim_result_fini, even on failure. */
bool spw_cli_trials_run(struct spw_cli_trials *trials, const struct spw_cli_trial *trial,
                        struct spw_cli_sim_result *ret_result, int *ret_code);
