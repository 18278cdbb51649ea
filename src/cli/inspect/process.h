/* Reads other processes that run under spillway: their statistics, call sites and libraries. It
 * does not know how a program is started.
 *
 *   call_sites   the call sites of another process
 *   control      asks a process to pause or to resume
 *   libraries    the files of another process's libraries, read without trust
 *   process      finds the shared memory of a process
 *   running      all processes of this user under spillway
 *   symbols      names of native functions, from the files of libraries
 *   watched      a process whose statistics are read again and again
 *
 * The functions below find the files of a running process that hold its statistics and call sites.
 * One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_PROCESS_PATH = PATH_MAX + 64 };

enum spw_cli_found {
    SPW_CLI_FOUND,
    SPW_CLI_FOUND_NO_PROCESS, /* no such process */
    SPW_CLI_FOUND_DENIED,     /* this user may not read it */
    SPW_CLI_FOUND_NOTHING,    /* it does not run under spillway, or does not use CUDA yet */
};

/* Parses a pid. Returns false if the text is not a pid. */
bool spw_cli_process_parse(const char *text, int *ret_pid);

/* Finds the files of a process that hold its statistics (for spw_stats_read) and its call sites
 * (for spw_cli_call_sites_read). ret_sites is "" if the process does not record call sites, or if
 * the path of the call sites' file is only in the statistics. */
enum spw_cli_found spw_cli_process_find(int pid, char ret_stats[SPW_CLI_PROCESS_PATH],
                                        char ret_sites[SPW_CLI_PROCESS_PATH]);

/* Returns false if the process no longer maps the file, because the process has executed another
 * program. Returns true if the mappings of the process cannot be read, for instance while the
 * process ends. */
bool spw_cli_process_maps(int pid, int file);

/* Opens a path that spw_cli_process_find returned, for reading. The caller closes the descriptor.
 * On failure, sets errno and returns -1. errno is EPERM if the file belongs neither to the
 * process's user nor to root. */
int spw_cli_process_open(int pid, const char *path);

/* Returns the pid that the process has in its own pid namespace, for instance in a container.
 * Returns 0 if the process has ended. */
int spw_cli_process_own_pid(int pid);

/* Writes the pids of all descendants of `pid` that run under spillway, separated by commas. Writes
 * "" if there are none. */
void spw_cli_process_descendants(int pid, char *ret_pids, size_t capacity);
