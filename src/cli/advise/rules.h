/* A plan as a policy file, and back. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/advise/plan.h"

/* Makes a policy with one rule for each place and share on the host. The comment of a rule names
 * its purpose. NULL without memory. The caller deletes it. */
cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan);

/* Writes for each kind how many bytes of a block the policy places on the host, by the code that
 * libspillway.so reads it with. False when the policy is not valid, or without memory. */
bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes);
