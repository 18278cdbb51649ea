/* Policies explained, proposed and listed for a user. It does not know how a policy is read.
 *
 *   decision     explains the decision of a policy
 *   reference    prints the keys of the policy language
 *   schema       writes the JSON schema of policies from the keys
 *   suggestion   proposes a policy that frees device memory
 *   usage        the decisions of a policy, by call site of a statistics file
 *
 * All is printed on stdout. One thread. */
#pragma once

#include "cli/console/json.h"
#include "cli/usage/sites_file.h"
#include "policy/policy.h"

/* Prints each rule up to the first that matches: the key that does not match, or its action. `name`
 * is the name of the file. */
void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request);

/* For each device, prints the share of each rule in the memory that call sites held at the peak.
 * The file has no sizes and numbers of single allocations: a rule with such a condition has a
 * possible share. `name` is the name of the policy. */
void spw_cli_policy_print_usage(const char *name, const struct spw_policy *policy,
                                const struct spw_cli_sites_file *file);

/* Makes a policy whose rules place `bytes` on the host that call sites of a device held at its
 * peak. One rule is used if one suffices: the smallest sufficient one of the cheapest
 * (callsite/rule.h). *ret_freed is the least that the rules free, less than `bytes` if all do not
 * suffice. NULL when no site can be named, or without memory. The caller deletes it. */
cJSON *spw_cli_policy_suggest(const struct spw_cli_sites_file *file, int device, uint64_t bytes,
                              uint64_t *ret_freed);

/* Print the JSON Schema, as in policies/policy.schema.json; Markdown tables of the keys, as in
 * policies/README.md. Both come from the table that the parser uses. */
void spw_cli_policy_print_schema(void);
void spw_cli_policy_print_keys(void);
