/* Run folders (run_directory.h) that a launcher left when it was killed: they take memory, as they
 * lie in /dev/shm. The next launcher of the same user removes them.
 *
 * A launcher keeps a file of its folder locked. The kernel ends the lock with the launcher, however
 * that ends, also where several containers share /dev/shm and do not see each other's processes. A
 * folder without that file is left alone. One thread. */
#pragma once

/* The name of a run folder, for mkdtemp. */
#define SPW_CLI_RUN_FOLDER "spillway-XXXXXX"

/* Locks a folder that was just made. Returns the descriptor that holds the lock; -1 where files
 * cannot be locked: then nobody will remove the folder. */
int spw_cli_leftovers_claim(const char *folder);

/* Removes the file that is locked, and ends the lock: the folder can be removed. */
void spw_cli_leftovers_release(const char *folder, int claim);

/* Removes the folders in `parent` that are left over: they belong to this user, no launcher holds
 * them, and no process of their run lives. */
void spw_cli_leftovers_remove(const char *parent);
