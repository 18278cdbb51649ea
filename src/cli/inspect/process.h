/* Finds the shared memory of a running process under spillway, by its pid. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_PROCESS_PATH = PATH_MAX + 64 };

enum spw_cli_found {
    SPW_CLI_FOUND,
    SPW_CLI_FOUND_NO_PROCESS, /* no such process */
    SPW_CLI_FOUND_DENIED,     /* the system does not let us look */
    SPW_CLI_FOUND_NOTHING,    /* it has no such memory: no spillway, or CUDA is not in use yet */
};

/* Paths by which its statistics (spw_stats_open) and its call sites (spw_cli_call_sites_read) can
 * be opened; that of the sites is "" when there are none to be found that way, and what the
 * statistics say counts then. */
enum spw_cli_found spw_cli_process_find(int pid, char ret_stats[SPW_CLI_PROCESS_PATH],
                                        char ret_sites[SPW_CLI_PROCESS_PATH]);

/* Opens such a path for reading. -1 with errno set: EPERM when the file belongs neither to the
 * process's user nor to root, so that it is another's. */
int spw_cli_process_open(int pid, const char *path);

/* The number that the process has for itself: another one in a container. 0: it is gone. */
int spw_cli_process_own_pid(int pid);

/* Writes the pids of processes below `pid` that have such memory, separated by commas; "" when
 * there is none. */
void spw_cli_process_below(int pid, char *ret_pids, size_t capacity);
