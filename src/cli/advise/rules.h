/* Writes the groups that go to the host as a policy, and reads a policy back. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/groups.h"
#include "cli/advise/history.h"

/* Makes a policy with one rule for each place and share on the host. The comment of a rule gives
 * the memory that it saves, and its cost. `live_bytes`: may be live on the device within the
 * budget. NULL without memory. The caller deletes the policy. */
cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_group *groups, size_t count,
                                 uint64_t budget_bytes, uint64_t live_bytes);

/* For each kind, writes how many bytes of a block the policy places on the host. Reads the policy
 * with libspillway.so's code. False when the policy is not valid, or without memory. */
bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes);
