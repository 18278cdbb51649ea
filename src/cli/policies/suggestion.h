/* A policy that frees device memory, from a statistics file. One thread. */
#pragma once

#include "cli/console/json.h"
#include "cli/usage/sites_file.h"

/* Makes a policy whose rules place `bytes` on the host that call sites of a device held at its
 * peak. One rule is used if one suffices: the smallest sufficient one of the cheapest
 * (callsite/rule.h). *ret_freed is the least that the rules free, less than `bytes` if all do not
 * suffice. NULL when no site can be named, or without memory. The caller deletes it. */
cJSON *spw_cli_policy_suggest(const struct spw_cli_sites_file *file, int device, uint64_t bytes,
                              uint64_t *ret_freed);
