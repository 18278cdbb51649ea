/* Explains the decision of a policy on stdout. No locking. */
#pragma once

#include "policy/policy.h"

/* Prints each rule up to the first that matches: the key that does not match, or its action. `name`
 * is the name of the file. */
void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request);
