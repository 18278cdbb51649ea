/* The run directory: a private directory of `run` and `sim`. Every process of the run that
 * initialises CUDA keeps its statistics in a file there (stats/stats.h); the simulated driver adds
 * a record of its devices (sim/record.h). The files outlive a process that is killed; a folder that
 * outlives its launcher is removed by the next one (leftovers.h). One thread;
 * one directory at a time. */
#pragma once

#include <stdbool.h>

/* Removes what killed launchers have left, creates the directory, and sets SPILLWAY_RUN_DIR. False,
 * with one line of `command` on stderr, when it cannot: the program can run without it, but
 * statistics of killed processes are lost. */
bool spw_cli_run_directory_create(const char *command);

/* Uses the directory of the command that this one runs under, which removes it. False when there is
 * none. */
bool spw_cli_run_directory_join(void);

/* Writes the summary and the statistics file of every process that ended without writing them, and
 * compresses the recordings of those that ended. Processes that still run write their own. */
void spw_cli_run_directory_finish(void);

/* Calls `visit` for each file of the directory, in order of names. */
void spw_cli_run_directory_each(void (*visit)(const char *folder, const char *name, void *context),
                                void *context);

/* Removes the directory and its files. */
void spw_cli_run_directory_remove(void);
