/* Finds the processes of a run. A process belongs to the run if its environment names the run
 * directory (run_directory.h). This also finds processes that have left the session of the program,
 * such as torchrun's workers. One thread. */
#pragma once

#include <stdbool.h>

/* Returns true if the processes of the run together have used more than 20 ms of CPU time since the
 * last call, or if one of them waits for a disk. `program` counts as a process of the run, even if
 * there is no run directory. The first call returns true. Call this function about once per
 * second. */
bool spw_cli_members_work(int program);

/* Kills all processes of the run with SIGKILL. Does nothing if there is no run directory. */
void spw_cli_members_kill(void);

/* Returns true if another process of the run with this directory is alive, or if the processes
 * cannot be listed. */
bool spw_cli_members_live(const char *folder);
