/* Runs a command several times on simulated devices, with different settings for each run. Only one
 * series of runs can be open at a time, because the runs change the environment of this process.
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/verdict/sim_result.h"

/* Prepares the environment for a run on the simulated GPU, with or without the pool. If a library
 * is missing, writes a line for `command` to stderr and returns false. */
typedef bool spw_cli_prepare(const char *command, bool with_pool);

/* The most variables that may differ between runs. */
enum { SPW_CLI_TRIAL_VARIABLES = 20 };

enum { SPW_CLI_TRIAL_LINE = 240 };

/* A series of runs. */
struct spw_cli_trials {
    const char *command; /* for messages */
    spw_cli_prepare *prepare;
    char *values[SPW_CLI_TRIAL_VARIABLES]; /* the user's values; NULL: not set */
    unsigned runs;                         /* the number of runs so far */
    uint64_t runs_ns;                      /* their time together */
    int interrupt;                         /* the user's signal that ended the series; 0: none */
    char last_line[SPW_CLI_TRIAL_LINE]; /* last line that the last silent run wrote to stderr; safe
                                         * for a terminal */
};

/* A variable for a run. trial.c lists the possible variables. */
struct spw_cli_setting {
    const char *name;
    const char *value; /* NULL: not set */
};

/* One run. Variables that trial.c lists and `settings` omits keep the user's values. */
struct spw_cli_trial {
    char **arguments;
    bool with_pool;
    bool silent; /* the program's output is not shown */
    const struct spw_cli_setting *settings;
    size_t setting_count;
};

/* _begin begins a series and saves the user's values of the variables. _end frees the saved
 * values. */
void spw_cli_trials_begin(struct spw_cli_trials *trials, const char *command,
                          spw_cli_prepare *prepare);
void spw_cli_trials_end(struct spw_cli_trials *trials);

/* Returns the place of the next run in the series: "2 of 5, about 40 s", where the time is that of
 * the remaining runs. `left` is the number of these; 0: not known. `how` precedes the number of all
 * runs, for instance "at most ". The text is valid until the next call. */
const char *spw_cli_trials_place(const struct spw_cli_trials *trials, unsigned left,
                                 const char *how);

/* Runs the command. Returns false if the command could not be started. *ret_code is the exit code
 * of the command. The caller frees *ret_result with spw_cli_sim_result_fini, even on failure. */
bool spw_cli_trials_run(struct spw_cli_trials *trials, const struct spw_cli_trial *trial,
                        struct spw_cli_sim_result *ret_result, int *ret_code);
