/* Decisions: which rule of the policy in force decides on an allocation, and what it wishes.
 *
 * What can be said of a call site as such is found out when the site is first seen and kept with
 * its number; what differs from one allocation to the next is decided each time, without memory or
 * a driver call. Locking: none inside; never called with a lock held, since a new site's names are
 * looked up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "track/process.h"
#include "policy/policy.h"
#include "pool/placement.h"

/* What becomes of one allocation. */
struct spw_decision {
    const struct spw_policy_rule *rule;
    struct spw_pool_placement wish;
};

/* Puts a policy into force, whose `file` is named where something is said of it. It is taken over
 * and stays until the process ends; false, and it is still the caller's, when the process has no
 * memory. Once, by one thread. */
bool spw_serve_decision_open(struct spw_policy *policy, const char *file);

/* How many regions rules name, and whether rules may place blocks on the host: what a pool must
 * have addresses for. */
uint32_t spw_serve_decision_regions(bool *ret_host);

/* The rule that decides on an allocation of `bytes` and what it wishes; false when none does. `api`
 * is what the program called. */
bool spw_serve_decision_make(const struct spw_device *device, uint64_t bytes, uint32_t site,
                             const char *api, struct spw_decision *ret_decision);

/* The tally of a rule on a device. */
struct spw_tally *spw_serve_decision_tally(const struct spw_device *device,
                                           const struct spw_policy_rule *rule);

/* A wish that cannot be had: counts it, and says why, once for each rule. */
void spw_serve_decision_unmet(const struct spw_device *device, const struct spw_policy_rule *rule,
                              const char *why);

/* The limit of the rule refuses `bytes`: makes the decision what the rule says of what is beyond
 * it, false when that is to fail. Says so, once for each rule that warns, each time where it
 * fails. */
bool spw_serve_decision_beyond(const struct spw_device *device, struct spw_decision *decision,
                               uint64_t bytes);
