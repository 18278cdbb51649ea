/* Rules of a policy that place the memory of call sites on the host, and which of them to propose.
 *
 * For use inside somebody else's process. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/text.h"

enum { SPW_CALLSITE_RULE = 768, SPW_CALLSITE_NAME = 256 };

/* The condition of a rule on a call site: a frame of Python, else the node of the backward pass,
 * else a native function. What is not part of it is NULL or "". Texts are borrowed from the facts,
 * except where they are arrays. */
struct spw_callsite_condition {
    struct spw_python_frame python;
    const char *library;
    char symbol[SPW_CALLSITE_NAME];
    char node[SPW_CALLSITE_NAME];
};

/* Finds the condition that identifies a site best. Of several Python frames it names that of the
 * user's own code, or with `inner` the innermost one, which fewer sites have. False when there is
 * none. */
bool spw_callsite_condition_of(const struct spw_callsite_facts *facts, bool inner,
                               struct spw_callsite_condition *ret_condition);

/* True for a site that a rule with the condition matches. */
bool spw_callsite_condition_holds(const struct spw_callsite_condition *condition,
                                  const struct spw_callsite_facts *facts);

/* True if the two conditions of a site differ. */
bool spw_callsite_has_inner(const struct spw_callsite_facts *facts);

/* Equal for equal conditions. */
uint64_t spw_callsite_condition_hash(const struct spw_callsite_condition *condition);

/* Writes the rule as JSON; "" when it is too long. */
void spw_callsite_condition_put(const struct spw_callsite_condition *condition,
                                char ret_rule[SPW_CALLSITE_RULE]);

/* True for a site below torch.optim: the state of an optimizer, used once a step. */
bool spw_callsite_is_optimizer(const struct spw_callsite_facts *facts);

/* The call sites that one rule matches. */
struct spw_callsite_group {
    uint64_t hash;  /* of the condition */
    uint64_t bytes; /* they hold */
    uint64_t allocs, frees;
    bool optimizer;
    bool inner; /* of the condition */
    int first;  /* a number of the caller's: the first site of the group */
};

/* Adds a group of one site to the list, or to the group with its condition. The list has room for
 * one more. Returns the new number of groups. */
int spw_callsite_group_add(struct spw_callsite_group *groups, int count,
                           const struct spw_callsite_group *site);

/* How dear it is to have a group on the host, from how often its memory is used: 0 for the state of
 * an optimizer, 1 for what stays, such as weights, 2 for what comes and goes with a step. */
int spw_callsite_group_cost(const struct spw_callsite_group *group);

/* The index of the group to propose: the smallest that holds `missing_bytes` among the cheapest
 * that do; the largest when none does, or 0 are missing. -1: there are no groups. */
int spw_callsite_group_choose(const struct spw_callsite_group *groups, int count,
                              uint64_t missing_bytes);
