/* Policy rules that place the memory of call sites on the host, and the choice of a rule to
 * propose.
 *
 * For use inside the program's process. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/text.h"

enum { SPW_CALLSITE_RULE = 768, SPW_CALLSITE_NAME = 256 };

/* The condition of a rule on a call site: a Python frame. If the site has no Python frame, the
 * condition is the node of the backward pass. If it has no node either, the condition is a native
 * function. Unused members are NULL or "". The struct does not own its texts, except arrays. */
struct spw_callsite_condition {
    struct spw_python_frame python;
    const char *library;
    char symbol[SPW_CALLSITE_NAME];
    char node[SPW_CALLSITE_NAME];
};

/* Finds the condition that identifies a site best. If there are several Python frames, it is the
 * frame in the user's own code. With `inner`, it is the innermost frame, which fewer sites share.
 * Returns false if there is no condition for the site. */
bool spw_callsite_condition_of(const struct spw_callsite_facts *facts, bool inner,
                               struct spw_callsite_condition *ret_condition);

/* Returns true if a rule with this condition matches the site. */
bool spw_callsite_condition_holds(const struct spw_callsite_condition *condition,
                                  const struct spw_callsite_facts *facts);

/* Returns true if the conditions of a site with and without `inner` differ. */
bool spw_callsite_has_inner(const struct spw_callsite_facts *facts);

/* Returns a hash of the condition. Equal conditions have equal hashes. */
uint64_t spw_callsite_condition_hash(const struct spw_callsite_condition *condition);

/* Writes the rule as JSON; "" if it does not fit. */
void spw_callsite_condition_put(const struct spw_callsite_condition *condition,
                                char ret_rule[SPW_CALLSITE_RULE]);

/* Returns true for a site below torch.optim. Its memory is the state of an optimizer, which is used
 * once a step. */
bool spw_callsite_is_optimizer(const struct spw_callsite_facts *facts);

/* The call sites that one rule matches. */
struct spw_callsite_group {
    uint64_t hash;  /* hash of the condition */
    uint64_t bytes; /* memory that these sites hold */
    uint64_t allocs, frees;
    bool optimizer;
    bool inner; /* the condition was found with `inner` */
    int first;  /* the first site of the group, by a number that the caller chooses */
};

/* Adds a site to the group that has its condition. If there is no such group, appends a new one to
 * the list, which must have room for it. Returns the new number of groups. */
int spw_callsite_group_add(struct spw_callsite_group *groups, int count,
                           const struct spw_callsite_group *site);

/* Returns the cost of placing a group on the host. It depends on how often the memory is used: 0
 * for the state of an optimizer, 1 for memory that stays, such as weights, 2 for memory that is
 * freed within a step. */
int spw_callsite_group_cost(const struct spw_callsite_group *group);

/* Returns the index of the group to propose. Among the groups that hold `missing_bytes`, the
 * cheapest are considered, and the smallest of these is chosen. If no group holds `missing_bytes`,
 * or if `missing_bytes` is 0, the largest group is chosen. Returns -1 if there are no groups. */
int spw_callsite_group_choose(const struct spw_callsite_group *groups, int count,
                              uint64_t missing_bytes);
