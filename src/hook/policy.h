/* The policy in force: which rule decides on an allocation, and what it wishes.
 *
 * It is read once, before the first call is served, and only read from then on. What can be said of
 * a call site as such is found out when the site is first seen and kept with its number; what
 * differs from one allocation to the next is decided each time, without memory or a driver call.
 * Locking: none inside; never called with a lock held, since a new site's names are looked up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hook/hook.h"
#include "policy/policy.h"
#include "pool/wish.h"

/* What becomes of one allocation. */
struct spw_decision {
    const struct spw_policy_rule *rule;
    struct spw_pool_wish wish;
};

/* The policy in force; NULL: none. */
extern _Atomic(struct spw_policy *) spw_hook_policy;

/* Reads what SPILLWAY_POLICY names; a bad file is reported in one line, and there is no policy.
 * Does nothing when that was done. No lock: the dynamic loader is asked. */
void spw_policy_open_once(void);

/* The file that is in force. */
const char *spw_policy_file_name(void);

/* How many regions rules name, and whether rules may place blocks on the host: what a pool must
 * have addresses for. */
uint32_t spw_policy_regions(bool *ret_host);

/* The rule that decides on an allocation of `bytes` and what it wishes; false when none does. `api`
 * is what the program called. */
bool spw_policy_decision(const struct spw_device *device, uint64_t bytes, uint32_t site,
                         const char *api, struct spw_decision *ret_decision);

/* The tally of a rule on a device. */
struct spw_tally *spw_policy_tally(const struct spw_device *device,
                                   const struct spw_policy_rule *rule);

/* A wish that cannot be had: counts it, and says why, once for each rule. */
void spw_policy_unmet(const struct spw_device *device, const struct spw_policy_rule *rule,
                      const char *why);

/* The limit of a rule is passed: says so, once for each rule that warns, each time where it
 * refuses.
 */
void spw_policy_beyond(const struct spw_device *device, const struct spw_decision *decision,
                       uint64_t bytes);
