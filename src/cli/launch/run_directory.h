/* The run directory: a private directory of `run` and `sim`. Every process of the run that
 * initialises CUDA keeps its statistics in a file there (stats/stats.h); the simulated driver adds
 * a record of its devices (sim/record.h). The files outlive a killed process. The next launcher
 * removes the folder of a killed launcher (leftovers.h). One thread; one directory at a time. */
#pragma once

#include <stdbool.h>

/* The first function removes the folders of killed launchers, creates the directory, and sets
 * SPILLWAY_RUN_DIR. False, with one line of `command` on stderr, on failure: the program can run
 * without the directory, but statistics of killed processes are lost. The second function removes
 * the directory and its files. */
bool spw_cli_run_directory_create(const char *command);
void spw_cli_run_directory_remove(void);

/* Uses the directory of the command that started this one, and leaves its removal to that command.
 * False when there is none. */
bool spw_cli_run_directory_join(void);

/* For every process that has ended, compresses the recording, and writes the summary and the
 * statistics file if the process did not. Running processes write their own when they end. */
void spw_cli_run_directory_finish(void);

/* Calls `visit` for each file of the directory, in order of names. */
void spw_cli_run_directory_each(void (*visit)(const char *folder, const char *name, void *context),
                                void *context);
