/* Explains policies and their keys, and proposes policies. It does not know how a policy is read.
 *
 *   decision     explains the decision of a policy
 *   reference    prints the keys of the policy language
 *   schema       writes the JSON schema of policies from the keys
 *   suggestion   proposes a policy that frees device memory
 *   usage        the memory that each rule of a policy decides, from a statistics file
 *
 * All output goes to stdout. One thread. */
#pragma once

#include "cli/console/json.h"
#include "cli/usage/sites_file.h"
#include "policy/policy.h"

/* Prints the rules up to the first that matches: for each rule before it, the key that does not
 * match; for the matching rule, its action. `name` is the name of the policy file. */
void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request);

/* For each device, prints the share of each rule in the memory that call sites held at the peak.
 * The file does not have the sizes and numbers of single allocations, so a rule with conditions on
 * these gets an upper bound. `name` is the name of the policy. */
void spw_cli_policy_print_usage(const char *name, const struct spw_policy *policy,
                                const struct spw_cli_sites_file *file);

/* Makes a policy whose rules place `bytes` of a device's peak memory on the host. If a single rule
 * can suffice, it is the only one: the smallest of the cheapest sufficient rules (callsite/rule.h).
 * *ret_freed is the number of bytes that the rules free at least. It is less than `bytes` if all
 * rules together do not suffice. NULL when no rule can name a site, or without memory. The caller
 * deletes the policy. */
cJSON *spw_cli_policy_suggest(const struct spw_cli_sites_file *file, int device, uint64_t bytes,
                              uint64_t *ret_freed);

/* Print the JSON Schema (policies/policy.schema.json), and Markdown tables of the keys
 * (policies/README.md). Both come from the table that the parser uses. */
void spw_cli_policy_print_schema(void);
void spw_cli_policy_print_keys(void);
