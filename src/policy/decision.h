/* Decisions: the rule of the policy that matches an allocation, and the placement it asks for.
 *
 * Rules are matched with a call site once, when the site is new, and the result is kept with the
 * site's number. Properties that differ between allocations of a site are matched each time,
 * without memory or a driver call.
 *
 * Locking: takes no lock. The caller holds none either, since the names of a new site are looked
 * up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "pool/pool.h"

/* A device, as rules see it. */
struct spw_ruled {
    int ordinal;
    uint64_t total_bytes;        /* of its memory, for limits in percent */
    struct spw_account *tallies; /* by rule; in the statistics */
};

/* The placement of one allocation, and the rule that asks for it. */
struct spw_decision {
    const struct spw_policy_rule *rule;
    struct spw_pool_placement placement;
};

/* Puts a policy into force until the process ends; messages name its `file`. Takes ownership of the
 * policy. False when the process has no memory; the caller then keeps the policy. To be called
 * once, by one thread. */
bool spw_policy_decision_open(struct spw_policy *policy, const char *file);

/* Finds the rule that matches an allocation of `bytes`; false when none does. `api` is the function
 * that the program called. This function and the functions below need a policy in force, unless
 * noted. */
bool spw_policy_decision_make(const struct spw_ruled *device, uint64_t bytes, uint32_t site,
                              const char *api, struct spw_decision *ret_decision);

/* Begins a step that the program marked: the key nth_in_step counts from 1 again at every call
 * site. Needs no policy. */
void spw_policy_decision_mark_step(void);

/* The tally of a rule on a device. */
struct spw_account *spw_policy_decision_tally(const struct spw_ruled *device,
                                              const struct spw_policy_rule *rule);

/* The number of the rule of that name; 0: there is none. */
unsigned spw_policy_decision_find(const char *name);

/* The number of a rule in its policy, from 1. */
unsigned spw_policy_decision_number(const struct spw_policy_rule *rule);

/* Counts an impossible placement, and reports the reason once for each rule. */
void spw_policy_decision_unmet(const struct spw_ruled *device, const struct spw_policy_rule *rule,
                               const char *why);

/* Applies the rule's `then` to an allocation whose `bytes` exceed the rule's limit. False when the
 * allocation is to fail, which is reported each time. A rule that warns is reported once. */
bool spw_policy_decision_beyond(const struct spw_ruled *device, struct spw_decision *decision,
                                uint64_t bytes);
