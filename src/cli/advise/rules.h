/* Groups that go to the host as a policy file, and back. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/groups.h"
#include "cli/advise/history.h"

/* Makes a policy with one rule for each place and share on the host. The comment of a rule names
 * its purpose. `live_bytes` may be live on the device within the budget. NULL without memory. The
 * caller deletes it. */
cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_group *groups, size_t count,
                                 uint64_t budget_bytes, uint64_t live_bytes);

/* Writes for each kind how many bytes of a block the policy places on the host, by the code that
 * libspillway.so reads it with. False when the policy is not valid, or without memory. */
bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes);
