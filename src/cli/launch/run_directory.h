/* The launcher's private folder: every process of the run that initialises CUDA keeps its
 * statistics in a file there (stats/stats.h), so that the launcher can finish for those that died
 * without their exit handler; and on the simulated GPU the record of its devices (sim/record.h). */
#pragma once

#include <stdbool.h>

/* Makes the folder and names it in SPILLWAY_RUN_DIR. Without one (false) the run may go on, and
 * only that service is lost; one line says so. */
bool spw_cli_run_directory_create(const char *subcommand);

/* Writes summary and statistics file of every process that died without. Processes that still run
 * keep their mapping and write their own. */
void spw_cli_run_directory_finish(void);

/* Calls `visit` for each file of the folder, in the order of names; not at all without a folder. */
void spw_cli_run_directory_each(void (*visit)(const char *folder, const char *name, void *context),
                                void *context);

/* Removes the folder, after all that reads it: the files tell which processes are of this run. */
void spw_cli_run_directory_remove(void);
