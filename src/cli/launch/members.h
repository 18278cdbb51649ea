/* The processes of a run: their environment names its run directory (run_directory.h), even if they
 * have left the program's session, as torchrun's workers do. One thread. */
#pragma once

#include <stdbool.h>

/* True if a process of the run has worked since the last call, or waits for a disk. `program`
 * counts as a process of the run even without a run directory. The first call returns true. To be
 * called about once a second. */
bool spw_cli_members_work(int program);

/* Kills all processes of the run (SIGKILL), if there is a run directory. */
void spw_cli_members_kill(void);

/* True if another process of the run with this directory lives, or processes cannot be listed. */
bool spw_cli_members_live(const char *folder);
