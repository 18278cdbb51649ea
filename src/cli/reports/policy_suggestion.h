/* A policy that frees device memory, from a statistics file. One thread. */
#pragma once

#include "cli/console/json.h"
#include "cli/reports/sites_file.h"

/* Makes a policy whose rules place `bytes` on the host that call sites of a device held at its
 * peak: one rule, the smallest that is enough among the cheapest (callsite/rule.h), else several.
 * *ret_freed is what they hold, at least; it is less than `bytes` when all rules together are not
 * enough. NULL when no site can be named, or without memory. The caller deletes it. */
cJSON *spw_cli_policy_suggest(const struct spw_cli_sites_file *file, int device, uint64_t bytes,
                              uint64_t *ret_freed);
