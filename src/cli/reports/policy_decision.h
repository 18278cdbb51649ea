/* Why a policy decides as it does, in words on stdout. */
#pragma once

#include "policy/policy.h"

/* Prints, for each rule up to the one that decides, why it matches or which key does not, and what
 * becomes of the allocation. `name` is what the file is called. */
void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request);
