/* Policy rules that place the memory of call sites on the host, and the choice of one to propose.
 *
 * For use inside the program's process. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/text.h"

enum { SPW_CALLSITE_RULE = 768, SPW_CALLSITE_NAME = 256 };

/* The condition of a rule on a call site: a Python frame; for a site without one, the node of the
 * backward pass; for a site without either, a native function. Unused members are NULL or "". Texts
 * are borrowed from the facts, except arrays. */
struct spw_callsite_condition {
    struct spw_python_frame python;
    const char *library;
    char symbol[SPW_CALLSITE_NAME];
    char node[SPW_CALLSITE_NAME];
};

/* Finds the condition that identifies a site best. Of several Python frames it takes the one of the
 * user's own code or, with `inner`, the innermost one, which fewer sites have. False when the site
 * has no condition. */
bool spw_callsite_condition_of(const struct spw_callsite_facts *facts, bool inner,
                               struct spw_callsite_condition *ret_condition);

/* True for a site that a rule with the condition matches. */
bool spw_callsite_condition_holds(const struct spw_callsite_condition *condition,
                                  const struct spw_callsite_facts *facts);

/* True if a site's conditions with and without `inner` differ. */
bool spw_callsite_has_inner(const struct spw_callsite_facts *facts);

/* A hash, which is equal for equal conditions. */
uint64_t spw_callsite_condition_hash(const struct spw_callsite_condition *condition);

/* Writes the rule as JSON; "" when it does not fit. */
void spw_callsite_condition_put(const struct spw_callsite_condition *condition,
                                char ret_rule[SPW_CALLSITE_RULE]);

/* True for a site below torch.optim: the state of an optimizer, used once a step. */
bool spw_callsite_is_optimizer(const struct spw_callsite_facts *facts);

/* The call sites that one rule matches. */
struct spw_callsite_group {
    uint64_t hash;  /* of the condition */
    uint64_t bytes; /* held by these sites */
    uint64_t allocs, frees;
    bool optimizer;
    bool inner; /* the condition was found with `inner` */
    int first;  /* the group's first site, by a number of the caller's */
};

/* Adds a site to the group with its condition or, if there is none, to the list as a new group. The
 * list has room for one more group. Returns the new number of groups. */
int spw_callsite_group_add(struct spw_callsite_group *groups, int count,
                           const struct spw_callsite_group *site);

/* The cost of having a group on the host, by how often its memory is used: 0 for the state of an
 * optimizer, 1 for memory that stays, such as weights, 2 for memory that is freed within a step. */
int spw_callsite_group_cost(const struct spw_callsite_group *group);

/* The index of the group to propose. Among the groups that hold `missing_bytes` it is the smallest
 * of the cheapest ones. If no group holds that much, or `missing_bytes` is 0, it is the largest
 * group. -1: there are no groups. */
int spw_callsite_group_choose(const struct spw_callsite_group *groups, int count,
                              uint64_t missing_bytes);
