/* Decisions: the policy rule that matches an allocation, and the placement that the rule requests.
 *
 * The rules are compared with a call site once, when the site is new. The result is stored with the
 * number of the site. Properties that differ between the allocations of a site are compared at each
 * allocation, without allocating memory and without a driver call.
 *
 * Locking: takes no lock. The caller holds none either, because the names of a new site are looked
 * up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "pool/pool.h"

/* The properties of a device that rules use. */
struct spw_ruled {
    int ordinal;
    uint64_t total_bytes;        /* size of the device's memory, for limits in percent */
    struct spw_account *tallies; /* one for each rule; in the statistics */
};

/* The placement of one allocation, and the rule that requests it. */
struct spw_decision {
    const struct spw_policy_rule *rule;
    struct spw_pool_placement placement;
};

/* Puts a policy into force until the process ends. Messages name its `file`. Takes ownership of the
 * policy. Returns false if the process has no memory; the caller then still owns the policy. Called
 * once, by one thread. */
bool spw_policy_decision_open(struct spw_policy *policy, const char *file);

/* Finds the rule that matches an allocation of `bytes`. Returns false if there is none. `api` is
 * the function that the program called. This function and the functions below need a policy in
 * force, unless noted. */
bool spw_policy_decision_make(const struct spw_ruled *device, uint64_t bytes, uint32_t site,
                              const char *api, struct spw_decision *ret_decision);

/* Begins a step that the program marked. The key nth_in_step then counts from 1 again at every call
 * site. Needs no policy. */
void spw_policy_decision_mark_step(void);

/* Returns the account of a rule on a device. */
struct spw_account *spw_policy_decision_tally(const struct spw_ruled *device,
                                              const struct spw_policy_rule *rule);

/* Returns the number of the rule with this name; 0 if there is none. */
unsigned spw_policy_decision_find(const char *name);

/* Returns the number of a rule in its policy, from 1. */
unsigned spw_policy_decision_number(const struct spw_policy_rule *rule);

/* Counts a placement that was impossible. Reports the reason once for each rule. */
void spw_policy_decision_unmet(const struct spw_ruled *device, const struct spw_policy_rule *rule,
                               const char *why);

/* Applies the `then` of a rule to an allocation of `bytes` that exceeds the rule's limit. Returns
 * false if the allocation must fail; each such failure is reported. A rule that only warns is
 * reported once. */
bool spw_policy_decision_beyond(const struct spw_ruled *device, struct spw_decision *decision,
                                uint64_t bytes);
