/* The advice in words, on stdout. One thread. */
#pragma once

#include "cli/advise/history.h"
#include "cli/advise/plan.h"

/* Prints the peak and its call sites, the groups that the plan places, and the predicted cost.
 * `step_ns`: of a step without memory on the host; 0: not known. */
void spw_cli_advise_answer_print(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan, uint64_t step_ns);

/* The time of a step with the plan, as a multiple of one without memory on the host; 0: unknown. */
double spw_cli_advise_answer_ratio(uint64_t step_ns, uint64_t cost_ns);
