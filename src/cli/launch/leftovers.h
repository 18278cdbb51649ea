/* Removes the run directories (run_directory.h) of launchers that were killed. Such a leftover
 * takes memory in /dev/shm until the next launcher of the same user removes it.
 *
 * A launcher keeps a file in its run directory locked. The kernel releases the lock when the
 * launcher ends, no matter how. The lock also works between containers that share /dev/shm and do
 * not see each other's processes. A directory that has no such file is not removed. One thread. */
#pragma once

/* The template of a run directory's name, for mkdtemp. */
#define SPW_CLI_RUN_FOLDER "spillway-XXXXXX"

/* Locks a new run directory. Returns the descriptor that holds the lock, or -1 if files cannot be
 * locked. A directory that was never locked is not removed by other launchers. */
int spw_cli_leftovers_claim(const char *folder);

/* Removes the locked file and releases the lock. Afterwards the directory can be removed. */
void spw_cli_leftovers_release(const char *folder, int claim);

/* Removes the leftover run directories in `parent`. A directory of this user is a leftover if its
 * file is no longer locked and no process of the run is alive. */
void spw_cli_leftovers_remove(const char *parent);
