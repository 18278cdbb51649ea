/* Removes run folders (run_directory.h) of killed launchers, which take memory in /dev/shm. The
 * next launcher of the same user removes them.
 *
 * A launcher keeps a file of its folder locked. The kernel releases the lock when the launcher ends
 * in any way. Locks also work for containers that share /dev/shm and do not see each other's
 * processes. A folder without the locked file is not removed. One thread. */
#pragma once

/* The name of a run folder, for mkdtemp. */
#define SPW_CLI_RUN_FOLDER "spillway-XXXXXX"

/* Locks a new folder. Returns the descriptor that holds the lock; -1 if files cannot be locked. No
 * other launcher removes a folder that was never locked. */
int spw_cli_leftovers_claim(const char *folder);

/* Removes the locked file and releases the lock, so that the folder can be removed. */
void spw_cli_leftovers_release(const char *folder, int claim);

/* Removes the leftover folders in `parent`: folders of this user whose file is no longer locked and
 * whose run has no live process. */
void spw_cli_leftovers_remove(const char *parent);
