/* Writes a plan as a policy, and applies a policy to the kinds of a recording. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/groups.h"
#include "cli/advise/history.h"

/* What a policy does. */
struct spw_cli_advise_decisions {
    const struct spw_cli_advise_group *groups; /* with the host's share of each */
    size_t group_count;
    const bool *again; /* by module: it is recomputed; NULL: none is */
    uint64_t again_ns; /* of a step, to recompute them */
    uint64_t budget_bytes, live_bytes;
};

/* Makes a policy with one rule for each place that has a share on the host, and one for the modules
 * that are recomputed. The comment of a rule states what it saves and what it costs. Returns NULL
 * if memory runs out. The caller deletes the policy. */
cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_decisions *decisions);

/* For each kind, writes how many bytes of a block the policy places on the host. Parses the policy
 * with the same code as libspillway.so. Returns false if the policy is not valid or if memory runs
 * out. */
bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes);
