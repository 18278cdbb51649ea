/* `spillway advise`: chooses the groups of allocations that go to the host, and the modules that
 * are recomputed. It does not know real cards.
 *
 *   answer    prints the advice
 *   answer_json  makes the advice as JSON, and its page
 *   changes   memory that changes of the script would save
 *   cost      the cost of memory on the host, in time
 *   groups    groups of allocations that rules can distinguish
 *   history   memory and use of each kind of allocation, moment by moment
 *   passes    the forward passes of modules
 *   plan      makes the advice for a recording
 *   question  answers for a command
 *   reader    reads a history from a recording
 *   reading   the state of a reading of a recording
 *   recompute chooses the modules that are recomputed
 *   replay    runs the command with ample memory, and within the budget
 *   rules     writes a plan as a policy file, and reads it
 *   search    chooses the groups with the least cost
 *   settings  what was asked, and what answers share
 *   timeline  live bytes of a run, with modules recomputed
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
#include "cli/advise/recompute.h"
#include "cli/advise/search.h"

/* The limits that the user sets. */
struct spw_cli_advise_goal {
    uint64_t budget_bytes; /* of device memory */
    uint64_t kept_bytes;   /* part of the budget for the driver's own memory, which is never live */
    uint64_t host_bytes;   /* highest bytes that may be on the host */
    double link;           /* speed of a copy in each direction, in bytes per nanosecond */
    uint64_t step_ns;      /* time of a step with ample memory; 0: not known */
    bool recompute;        /* modules may be recomputed; the time of a step must be known */
};

enum spw_cli_advise_answer {
    SPW_CLI_ADVISE_FITS,       /* the program fits as it is */
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
    bool *again;            /* the modules that are recomputed; NULL: none; owned by the plan */
    size_t again_count;     /* their number */
    uint64_t again_ns;      /* of a step: the part of cost_ns that recomputes them */
    uint64_t spilled_bytes; /* bytes that still do not fit, and spill without a rule */
    cJSON *policy;          /* PLACED: the policy file; owned by the plan */
};

/* Makes a plan. Returns false if memory runs out. The caller calls spw_cli_advise_plan_fini. */
bool spw_cli_advise_plan_make(const struct spw_cli_advise_history *history,
                              const struct spw_cli_advise_goal *goal,
                              struct spw_cli_advise_plan *ret_plan);
void spw_cli_advise_plan_fini(struct spw_cli_advise_plan *plan);

/* Finds the peaks of a run, with an increasing number of recomputed modules. The caller frees
 * *ret_points, which may be NULL. Returns their number, 0 if memory runs out. */
size_t spw_cli_advise_plan_curve(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 struct spw_cli_advise_point **ret_points);

/* Prints the points of a curve, at most a dozen, with the time of a step. */
void spw_cli_advise_answer_curve(const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_point *points, size_t count);

/* Prints the peak and its call sites. `live_bytes` is that of the plan. */
void spw_cli_advise_answer_head(const struct spw_cli_advise_history *history,
                                const struct spw_cli_advise_goal *goal, uint64_t live_bytes);

/* Prints the modules that the plan recomputes, the groups that it places, and the predicted cost.
 */
void spw_cli_advise_answer_print(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan);

/* Prints how much memory possible changes of the script would save. The savings are computed from
 * the lifetimes of blocks. Changes that save little are omitted. */
void spw_cli_advise_changes_print(const struct spw_cli_advise_history *history);

/* Returns the time of a step with the plan, as a multiple of the time of a step without memory on
 * the host. Returns 0 if the time is not known. */
double spw_cli_advise_answer_ratio(uint64_t step_ns, uint64_t cost_ns);
