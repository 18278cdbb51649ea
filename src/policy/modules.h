/* The rules about modules (action recompute), as text for the Python companion, which applies them.
 * Pure; no locking. */
#pragma once

#include "policy/policy.h"

/* Writes the rules about modules that concern the process called `process` with rank `rank`
 * (negative: not known), as a list in JSON. Each rule is an object with the members name, module
 * and module_class (lists of patterns), recompute, every (0: not in the file) and permille (1000:
 * all modules). Returns false if the text does not fit, or if no rule concerns the process. */
bool spw_policy_modules_text(const struct spw_policy *policy, const char *process, int64_t rank,
                             char *ret_text, size_t capacity);
