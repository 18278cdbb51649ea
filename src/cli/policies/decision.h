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

/* Prints the rules up to the first rule that matches. For each rule that does not match, prints the
 * key that does not match. For the matching rule, prints its action. `name` is the name of the
 * policy file. */
void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request);

/* For each device, prints how much of the memory that call sites held at the peak each rule
 * decides. The file does not contain the sizes and numbers of single allocations. If a rule has
 * conditions on them, an upper bound is printed. `name` is the name of the policy. */
void spw_cli_policy_print_usage(const char *name, const struct spw_policy *policy,
                                const struct spw_cli_sites_file *file);

/* Makes a policy whose rules place `bytes` of a device's peak memory on the host. If a single rule
 * suffices, the policy has only this rule: the smallest one among the cheapest sufficient rules
 * (callsite/rule.h). *ret_freed is the number of bytes that the rules free at least. If all rules
 * together do not suffice, *ret_freed is less than `bytes`. Returns NULL if no rule can name a
 * site, or if memory runs out. The caller deletes the policy. */
cJSON *spw_cli_policy_suggest(const struct spw_cli_sites_file *file, int device, uint64_t bytes,
                              uint64_t *ret_freed);

/* _schema prints the JSON Schema (policies/policy.schema.json). _keys prints Markdown tables of the
 * keys (policies/README.md). Both are generated from the table that the parser uses. */
void spw_cli_policy_print_schema(void);
void spw_cli_policy_print_keys(void);
