/* Policies explained, proposed and listed for a user. It does not know how a policy is read.
 *
 *   decision     explains the decision of a policy
 *   reference    prints the keys of the policy language
 *   schema       writes the JSON schema of policies from the keys
 *   suggestion   proposes a policy that frees device memory
 *   usage        the decisions of a policy, by call site of a statistics file
 *
 * The decision is printed on stdout. No locking. */
#pragma once

#include "policy/policy.h"

/* Prints each rule up to the first that matches: the key that does not match, or its action. `name`
 * is the name of the file. */
void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request);
