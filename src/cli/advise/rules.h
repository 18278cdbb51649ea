/* A plan as a policy file, and back. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/advise/plan.h"

/* The policy with a rule for each place and share of what goes to the host; each comment says what
 * the rule is for. NULL without memory. The caller deletes it. */
cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan);

/* Writes for each kind how many bytes of a block the policy, as libspillway.so would read it,
 * places on the host. False when the policy is not valid, or there is no memory. */
bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes);
