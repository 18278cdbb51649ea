/* Finds all processes of this machine that run under spillway and that this user may read. One
 * thread. */
#pragma once

#include "cli/inspect/watched.h"

enum { SPW_CLI_RUNNING_MOST = 256 };

struct spw_cli_running {
    struct spw_cli_watched *list[SPW_CLI_RUNNING_MOST]; /* in any order */
    int count;
    bool full;             /* there are more processes than the list holds */
    uint64_t next_scan_ms; /* time of the next scan for new processes */
};

/* Updates the list: reads each process again, removes processes that have ended, and adds new
 * processes. Every two seconds, scans the machine for new processes and for processes that have
 * executed another program. If a scan takes long, scans less often. The caller zeroes *running
 * before the first call, and closes it after the last. */
void spw_cli_running_read(struct spw_cli_running *running);
void spw_cli_running_close(struct spw_cli_running *running);

/* Returns the pid of the process that is being read at this moment; 0: none. May be called in a
 * signal handler. */
int spw_cli_running_now(void);
