/* Pauses of several processes at one moment. It does not know how a program is started.
 *
 *   group   pauses all of the processes, or none
 *
 * If only one process of a job were paused, it could block the other processes, because the work of
 * a process may wait for the work of another process. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/inspect/control.h"
#include "cli/inspect/watched.h"

/* A process that receives a request. */
struct spw_cli_asked {
    struct spw_cli_watched watched;
    struct spw_cli_control control;
    struct spw_cli_answer answer;
    bool open;     /* `watched` and `control` are open; the caller closes them */
    bool answered; /* `answer` is the answer to the last request */
    bool steps;    /* the process was asked to step */
    bool undone;   /* the process continues, because another process could not be paused */
};

/* A group of processes, and the request that all of them receive. Pointers are not owned. */
struct spw_cli_group {
    struct spw_cli_request request; /* its action: pause, pause on demand, or resume */
    struct spw_cli_asked *asked;    /* all are open */
    size_t count;
};

/* Sends the request to all processes, waits for the answers, and stores them in `asked`. It waits
 * at most the request's `wait_ms` until the devices are idle. It waits without a limit until the
 * memory has been moved. */
void spw_cli_group_ask(struct spw_cli_group *group);
