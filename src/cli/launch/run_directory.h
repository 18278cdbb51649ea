/* The run directory is a private directory that `run` and `sim` create. Every process of the run
 * that initializes CUDA keeps its statistics in a file in this directory (stats/stats.h). The
 * simulated driver adds a file with a record of its devices (sim/record.h). The files remain when a
 * process is killed. If a launcher is killed, the next launcher removes its directory
 * (leftovers.h). One thread; one directory at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* _create removes the directories of killed launchers, creates the run directory, and sets
 * SPILLWAY_RUN_DIR. On failure, writes one line for `command` to stderr and returns false. The
 * program can then still run, but the statistics of killed processes are lost. _remove removes the
 * directory and its files. */
bool spw_cli_run_directory_create(const char *command);
void spw_cli_run_directory_remove(void);

/* Uses the run directory of the command that started this command. The directory is not removed by
 * this command. Returns false if there is no such directory. */
bool spw_cli_run_directory_join(void);

/* Completes the output of every process of the run that has ended. Compresses the recording of the
 * process. Writes the summary and the statistics file if the process has not written them. A
 * process that still runs writes its own when it ends. */
void spw_cli_run_directory_finish(void);

/* Returns the absolute paths of the recordings that spw_cli_run_directory_finish has seen so far,
 * each once, in the order of the runs and of the process numbers. */
const char *const *spw_cli_run_directory_recordings(size_t *ret_count);

/* Adds the recording of a process outside of this run to them, unless it is one of them. */
void spw_cli_run_directory_add_recording(const char *path);

/* Calls `visit` for each file in the directory, sorted by name. */
void spw_cli_run_directory_each(void (*visit)(const char *folder, const char *name, void *context),
                                void *context);
