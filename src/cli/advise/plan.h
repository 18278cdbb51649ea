/* `spillway advise`: the groups of allocations that should go to the host. It does not know real
 * cards.
 *
 *   answer    prints the advice
 *   changes   memory that changes of the script would save
 *   cost      the cost of memory on the host, in time
 *   groups    groups of allocations that rules can distinguish
 *   history   memory and use of each kind of allocation, moment by moment
 *   plan      makes the advice for a recording
 *   replay    runs the command with ample memory, and within the budget
 *   rules     writes a plan as a policy file, and reads it
 *   search    chooses the groups with the least cost
 *   where     the part of a call site that a rule matches
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/groups.h"
#include "cli/advise/history.h"
#include "cli/advise/search.h"

/* The request. */
struct spw_cli_advise_goal {
    uint64_t budget_bytes; /* of device memory */
    uint64_t kept_bytes;   /* part of the budget: the driver's own memory, never live */
    uint64_t host_bytes;   /* most that may go to the host */
    double link;           /* speed of a copy in each direction, in bytes a nanosecond */
};

enum spw_cli_advise_answer {
    SPW_CLI_ADVISE_FITS,       /* no group has to leave the device */
    SPW_CLI_ADVISE_PLACED,     /* rules make it fit */
    SPW_CLI_ADVISE_IMPOSSIBLE, /* no rules make it fit */
};

struct spw_cli_advise_plan {
    enum spw_cli_advise_answer answer;
    struct spw_cli_advise_group groups[SPW_CLI_ADVISE_GROUPS];
    size_t group_count;
    uint64_t live_bytes;    /* allowed to be live on the device */
    uint64_t device_bytes;  /* most bytes live on the device at once, with the rules */
    uint64_t host_bytes;    /* most bytes on the host at once, with the rules */
    double link_bytes;      /* in a step */
    uint64_t cost_ns;       /* of a step */
    uint64_t bound_ns;      /* of a step: no choice of these groups costs less */
    uint64_t default_ns;    /* of a step: the estimated cost of spilling without rules */
    uint64_t nearest_bytes; /* IMPOSSIBLE: live on the device with all groups on the host */
    bool host_is_short;     /* IMPOSSIBLE: for lack of room on the host */
    bool proven;            /* no better choice of these groups exists */
    cJSON *policy;          /* PLACED: the file; the caller deletes it */
};

/* Makes a plan. False without memory. The caller calls spw_cli_advise_plan_fini. */
bool spw_cli_advise_plan_make(const struct spw_cli_advise_history *history,
                              const struct spw_cli_advise_goal *goal,
                              struct spw_cli_advise_plan *ret_plan);
void spw_cli_advise_plan_fini(struct spw_cli_advise_plan *plan);

/* Prints the peak and its call sites, the groups that the plan places, and the predicted cost.
 * `step_ns`: of a step without memory on the host; 0: not known. */
void spw_cli_advise_answer_print(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan, uint64_t step_ns);

/* Prints the memory that changes of the script would save, by the lifetimes of blocks. Leaves out
 * changes that save little. */
void spw_cli_advise_changes_print(const struct spw_cli_advise_history *history);

/* The time of a step with the plan, as a multiple of one with no memory on the host; 0: unknown. */
double spw_cli_advise_answer_ratio(uint64_t step_ns, uint64_t cost_ns);
