/* All processes of this machine under spillway that this user may read. One thread. */
#pragma once

#include "cli/inspect/watched.h"

enum { SPW_CLI_RUNNING_MOST = 256 };

struct spw_cli_running {
    struct spw_cli_watched *list[SPW_CLI_RUNNING_MOST]; /* in any order */
    int count;
    bool full;             /* there are more processes than the list holds */
    uint64_t next_scan_ms; /* time of the next scan for new processes */
};

/* Reads the processes of the list again, removes ended ones, and adds new ones. Scans for new
 * processes and for executions of another program every two seconds, or less often if a scan takes
 * long. The caller sets *running to zero before the first call, and closes it. */
void spw_cli_running_read(struct spw_cli_running *running);
void spw_cli_running_close(struct spw_cli_running *running);

/* The process that is being read now; 0: none. For signal handlers. */
int spw_cli_running_now(void);
