/* `spillway advise`: chooses the groups of allocations that go to the host. It does not know real
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

/* The limits that the user sets. */
struct spw_cli_advise_goal {
    uint64_t budget_bytes; /* of device memory */
    uint64_t kept_bytes;   /* part of the budget for the driver's own memory, which is never live */
    uint64_t host_bytes;   /* highest bytes that may be on the host */
    double link;           /* speed of a copy in each direction, in bytes per nanosecond */
};

enum spw_cli_advise_answer {
    SPW_CLI_ADVISE_FITS,       /* the program fits with all groups on the device */
    SPW_CLI_ADVISE_PLACED,     /* the program fits with rules */
    SPW_CLI_ADVISE_IMPOSSIBLE, /* no rules make the program fit */
};

struct spw_cli_advise_plan {
    enum spw_cli_advise_answer answer;
    struct spw_cli_advise_group groups[SPW_CLI_ADVISE_GROUPS];
    size_t group_count;
    uint64_t live_bytes;    /* allowed to be live on the device */
    uint64_t device_bytes;  /* highest live bytes on the device, with the rules */
    uint64_t host_bytes;    /* highest bytes on the host, with the rules */
    double link_bytes;      /* in a step */
    uint64_t cost_ns;       /* of a step */
    uint64_t bound_ns;      /* of a step: a lower bound on the cost of any choice of these groups */
    uint64_t default_ns;    /* of a step: the estimated cost of spilling without rules */
    uint64_t nearest_bytes; /* IMPOSSIBLE: live bytes on the device if all groups are on the host */
    bool host_is_short;     /* IMPOSSIBLE: because the host memory is too small */
    bool proven;            /* it is proven that no choice of these groups costs less */
    cJSON *policy;          /* PLACED: the policy file; owned by the plan */
};

/* Makes a plan. Returns false if memory runs out. The caller calls spw_cli_advise_plan_fini. */
bool spw_cli_advise_plan_make(const struct spw_cli_advise_history *history,
                              const struct spw_cli_advise_goal *goal,
                              struct spw_cli_advise_plan *ret_plan);
void spw_cli_advise_plan_fini(struct spw_cli_advise_plan *plan);

/* Prints the peak and its call sites, the groups that the plan places, and the predicted cost.
 * `step_ns` is the time of a step without memory on the host; 0: not known. */
void spw_cli_advise_answer_print(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan, uint64_t step_ns);

/* Prints how much memory possible changes of the script would save. The savings are computed from
 * the lifetimes of blocks. Changes that save little are omitted. */
void spw_cli_advise_changes_print(const struct spw_cli_advise_history *history);

/* Returns the time of a step with the plan, as a multiple of the time of a step without memory on
 * the host. Returns 0 if the time is not known. */
double spw_cli_advise_answer_ratio(uint64_t step_ns, uint64_t cost_ns);
