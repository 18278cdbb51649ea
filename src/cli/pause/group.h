/* Asks several processes to pause or to go on. All are paused at one moment, or none: the work of
 * one may wait for that of another. One thread. */
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
    bool open;     /* the two above are; the caller closes them */
    bool answered; /* there is an answer to the last request */
    bool steps;    /* it was let go on for one call */
    bool undone;   /* it goes on, as another one could not be paused */
};

/* Processes, and what all of them are asked for. Pointers are not owned. */
struct spw_cli_group {
    struct spw_cli_request request; /* its action: pause, pause on demand, or resume */
    struct spw_cli_asked *asked;    /* all open */
    size_t count;
};

/* Asks all, and waits for the answers: at most the wait of the request for devices to become idle,
 * and as long as the moves take. Answers are in `asked`. */
void spw_cli_group_ask(struct spw_cli_group *group);
