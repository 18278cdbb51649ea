/* The launcher's private folder: every process of the run that initialises CUDA keeps its
 * statistics in a file there (stats/stats.h), so that the launcher can finish for those that died
 * without their exit handler. */
#pragma once

/* Makes the folder and names it in SPILLWAY_RUN_DIR. Without one the run goes on, and only that
 * service is lost; one line says so. */
void spw_rundir_create(const char *subcommand);

/* Writes summary and statistics file of every process that died without, and removes the folder.
 * Processes that still run keep their mapping and write their own. */
void spw_rundir_finish(void);
