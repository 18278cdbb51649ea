/* Chooses a policy for a command, from the recording of a run that did not fit, by the search of
 * `spillway advise`. What spilling does to a run, the choice does not see: the recording has the
 * program's requests, which are those of a run with ample memory. Only its clock is distorted
 * (state.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/replay.h"
#include "cli/keep/state.h"

/* The run. */
struct spw_cli_keep_facts {
    const char *recording;
    bool ended_early;      /* the program was refused memory, and failed */
    uint64_t budget_bytes; /* what the pool could use of the device */
    uint64_t own_bytes;    /* part of the budget for the driver's code; 0: not known */
    uint64_t host_bytes;   /* most host memory to use */
    uint64_t lacked_bytes; /* that earlier choices lacked */
    uint64_t held_ns;      /* of a step, when moves held submissions back; 0: not known */
    const struct spw_cli_advise_run *simulated; /* of a simulated run, with its times; else NULL */
};

struct spw_cli_keep_choice {
    cJSON *policy;          /* NULL: nothing was chosen; the caller deletes it */
    uint64_t device_bytes;  /* predicted peak; 0: not known */
    uint64_t spilled_bytes; /* predicted: what spills nevertheless */
    char text[512];         /* what was chosen and what it costs, or why nothing was */
};

/* Makes the choice. */
void spw_cli_keep_choose(const struct spw_cli_keep_facts *facts,
                         struct spw_cli_keep_choice *ret_choice);
