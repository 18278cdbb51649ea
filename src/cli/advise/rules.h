/* Writes the groups that go to the host as a policy, and applies a policy to the kinds of a
 * recording. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/groups.h"
#include "cli/advise/history.h"

/* Makes a policy with one rule for each place that has a share on the host. The comment of a rule
 * states how much memory the rule saves and what the rule costs. `live_bytes` is the memory that
 * may be live on the device within the budget. Returns NULL if memory runs out. The caller deletes
 * the policy. */
cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_group *groups, size_t count,
                                 uint64_t budget_bytes, uint64_t live_bytes);

/* For each kind, writes how many bytes of a block the policy places on the host. Parses the policy
 * with the same code as libspillway.so. Returns false if the policy is not valid or if memory runs
 * out. */
bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes);
