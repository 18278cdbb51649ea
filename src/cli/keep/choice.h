/* Chooses a policy for a command, from the recordings of a run that did not fit, by the search of
 * `spillway advise`. A recording has the program's requests, which spilling does not change. Only
 * its clock is distorted (state.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/replay.h"
#include "cli/keep/state.h"

/* The run of one process: of the program, or of a rank of a job. */
struct spw_cli_keep_facts {
    const char *recording;
    bool ended_early;      /* the program was refused memory, and failed */
    uint64_t budget_bytes; /* of device memory, for the pool */
    uint64_t own_bytes;    /* part of the budget for the driver's code; 0: not known */
    uint64_t host_bytes;   /* most host memory to use */
    uint64_t lacked_bytes; /* that earlier choices lacked */
    uint64_t held_ns;      /* of a step, when moves held submissions back; 0: not known */
    const struct spw_cli_advise_run
        *simulated; /* with the times of a simulated run; NULL: a real device */
};

struct spw_cli_keep_choice {
    cJSON *policy;          /* NULL: nothing was chosen; the caller deletes it */
    uint64_t device_bytes;  /* predicted peak; 0: not known */
    uint64_t spilled_bytes; /* predicted: what spills nevertheless */
    char text[512];         /* the choice and its cost, or why there is none */
};

/* Makes the choice for a job of `count` ranks, or for one process. It is the same for all ranks: it
 * has the rules that each of them needs. */
void spw_cli_keep_choose(const struct spw_cli_keep_facts *facts, size_t count,
                         struct spw_cli_keep_choice *ret_choice);
