/* Prints the decisions of a policy for the call sites of a statistics file. No locking. */
#pragma once

#include "cli/usage/sites_file.h"
#include "policy/policy.h"

/* For each device, prints the share of each rule in the memory that call sites held at the peak.
 * The file has no sizes and numbers of single allocations: a rule with such a condition has a
 * possible share. `name` is the name of the policy. */
void spw_cli_policy_print_usage(const char *name, const struct spw_policy *policy,
                                const struct spw_cli_sites_file *file);
