/* Reads other processes under spillway: their statistics, call sites and libraries. It does not
 * know how a program is started.
 *
 *   call_sites   the call sites of another process
 *   control      asks a process to pause or to resume
 *   libraries    the files of another process's libraries, read without trust
 *   process      finds the shared memory of a process
 *   running      all processes of this user under spillway
 *   symbols      names of native functions, from the files of libraries
 *   watched      a process whose statistics are read again and again
 *
 * The functions below find the statistics and call sites of a running process. One thread. */
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

/* Reads a pid from text. False for any other text. */
bool spw_cli_process_parse(const char *text, int *ret_pid);

/* Finds the files of a process: its statistics (spw_stats_read) and its call sites
 * (spw_cli_call_sites_read). *ret_sites is "" when the process keeps no call sites, or when only
 * its statistics name their path. */
enum spw_cli_found spw_cli_process_find(int pid, char ret_stats[SPW_CLI_PROCESS_PATH],
                                        char ret_sites[SPW_CLI_PROCESS_PATH]);

/* False when the process no longer maps the file: it has executed another program. True if its
 * mappings cannot be read, for instance while it ends. */
bool spw_cli_process_maps(int pid, int file);

/* Opens a path that spw_cli_process_find wrote, for reading; the caller closes the descriptor. On
 * failure returns -1 with errno set: EPERM if the file belongs neither to the process's user nor to
 * root. */
int spw_cli_process_open(int pid, const char *path);

/* The pid of the process in its own pid namespace, as in a container; 0: it has ended. */
int spw_cli_process_own_pid(int pid);

/* Writes the pids of descendants of `pid` that run under spillway, separated by commas; "" when
 * there are none. */
void spw_cli_process_descendants(int pid, char *ret_pids, size_t capacity);
