/* The processes of a run: those whose environment names its run directory (run_directory.h), also
 * where they have left the program's session, as torchrun's workers do. One thread. */
#pragma once

/* Kills them all (SIGKILL). Nothing without a run directory. */
void spw_cli_members_kill(void);
