/* The processes of a run: those whose environment names its run directory (run_directory.h), also
 * where they have left the program's session, as torchrun's workers do. One thread. */
#pragma once

#include <stdbool.h>

/* True if they have worked since the last call, or wait for a disk; `program` is one of them also
 * without a run directory. The first call says true. To be called about once a second. */
bool spw_cli_members_work(int program);

/* Kills them all (SIGKILL). Nothing without a run directory. */
void spw_cli_members_kill(void);

/* True if a process of the run with that directory lives, this one excepted, or if that cannot be
 * known. */
bool spw_cli_members_live(const char *folder);
