/* All processes of this machine under spillway that this user may look at. One thread. */
#pragma once

#include "cli/inspect/watched.h"

enum { SPW_CLI_RUNNING_MOST = 256 };

struct spw_cli_running {
    struct spw_cli_watched *list[SPW_CLI_RUNNING_MOST]; /* in no order that callers may rely on */
    int count;
    bool full;             /* there are more processes than the list holds */
    uint64_t next_scan_ms; /* when new processes are looked for again */
};

/* Takes the next look at the processes of the list, lets go of those that have ended, and adds new
 * ones. Those, and programs that a process has executed in the place of the one before, are looked
 * for every two seconds, less often where that takes long. The caller sets
 * *running to zero before the first call, and closes it. */
void spw_cli_running_read(struct spw_cli_running *running);

/* Lets go of all. */
void spw_cli_running_close(struct spw_cli_running *running);

/* The process that is being read now; 0: none. For signal handlers. */
int spw_cli_running_now(void);
