/* Chooses the groups of allocations that go to the host, so that a program stays within a budget of
 * device memory at the least cost.
 *
 * A group goes to the host as a whole, since a rule of a policy matches all of it. One group may be
 * split: only a part of each of its blocks goes to the host. A moment is a point of the run. At
 * each moment the memory on the host must cover the excess over the budget, and must fit in the
 * host memory. This is a covering problem with knapsack constraints. A depth-first search finds the
 * best choice, or the best so far after a number of steps. Its lower bound is the cost at the
 * dearest moment if every group may be split (the relaxed problem). If a single moment decides, one
 * split group suffices: the relaxed problem of that moment splits at most one.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_CLI_ADVISE_GROUPS = 48, SPW_CLI_ADVISE_MOMENTS = 64 };

/* A point of the run. In bytes. */
struct spw_cli_advise_moment {
    uint64_t excess;                      /* must leave the device */
    uint64_t held[SPW_CLI_ADVISE_GROUPS]; /* by each group */
};

struct spw_cli_advise_problem {
    size_t group_count, moment_count;
    uint64_t costs[SPW_CLI_ADVISE_GROUPS]; /* of each group on the host, in nanoseconds a step */
    bool can_split[SPW_CLI_ADVISE_GROUPS]; /* a part of each of the group's blocks can go */
    uint64_t split_costs[SPW_CLI_ADVISE_GROUPS]; /* if split, added to costs[]; the sum is charged
                                                  * by the share */
    struct spw_cli_advise_moment moments[SPW_CLI_ADVISE_MOMENTS];
    uint64_t host_bytes; /* room on the host */
};

struct spw_cli_advise_choice {
    bool on_host[SPW_CLI_ADVISE_GROUPS]; /* as a whole */
    int split;                           /* the group that is split; -1: none */
    double share;                        /* of the split group's bytes and cost */
    uint64_t cost;
    uint64_t bound; /* the least cost of any choice, if all groups could be split */
    bool proven;    /* no other choice costs less */
};

/* Finds a choice. False if none is found: ret_choice->proven is then true if no choice meets the
 * constraints, and false if the search ended early. */
bool spw_cli_advise_search(const struct spw_cli_advise_problem *problem,
                           struct spw_cli_advise_choice *ret_choice);
