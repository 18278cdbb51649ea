/* The other ranks of a job, if each rank has its own launcher of spillway, as in `mpirun spillway
 * run ...`. They write files of their own, and share one page. One thread. */
#pragma once

#include <stdbool.h>
#include <time.h>

/* Returns true if this command runs one of several ranks. */
bool spw_cli_other_ranks_exist(void);

/* Adds the recordings of the other ranks to those of this run (run_directory.h). `pattern` is the
 * value of SPILLWAY_RECORD; without %r, nothing is added. Recordings that ended before `since`,
 * when this command began, are of another job. */
void spw_cli_other_ranks_add(const char *pattern, time_t since);

/* Waits up to ten seconds until no other rank holds the lock of `folder`, and takes it. Returns a
 * descriptor, whose closing releases the lock; -1: the folder cannot be locked. */
int spw_cli_other_ranks_lock(const char *folder);
