/* Pauses of several processes at one moment. It does not know how a program is started.
 *
 *   group   pauses all of the processes, or none
 *
 * A process that is paused alone could block the others, because the work of one process may wait
 * for the work of another. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/inspect/control.h"
#include "cli/inspect/watched.h"

/* A process that is asked. */
struct spw_cli_asked {
    struct spw_cli_watched watched;
    struct spw_cli_control control;
    struct spw_cli_answer answer;
    bool open;     /* `watched` and `control` are open; the caller closes them */
    bool answered; /* `answer` is the answer to the last request */
    bool steps;    /* it was asked to step */
    bool undone;   /* it continues, since another could not be paused */
};

/* Processes, and the request to all of them. Pointers are not owned. */
struct spw_cli_group {
    struct spw_cli_request request; /* its action: pause, pause on demand, or resume */
    struct spw_cli_asked *asked;    /* all are open */
    size_t count;
};

/* Asks all processes, and waits for the answers: at most the request's `wait_ms` for idle devices,
 * and without a limit for moves. The answers are in `asked`. */
void spw_cli_group_ask(struct spw_cli_group *group);
