/* What a policy would decide on the call sites of a statistics file. No locking. */
#pragma once

#include "cli/reports/sites_file.h"
#include "policy/policy.h"

/* Prints for each device what each rule would get of the memory that call sites held at its peak.
 * The file does not know sizes and numbers of single allocations: what a rule with such a condition
 * may get is shown as possible. `name` is the name of the policy. */
void spw_cli_policy_print_usage(const char *name, const struct spw_policy *policy,
                                const struct spw_cli_sites_file *file);
