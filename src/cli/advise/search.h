/* Chooses the groups of allocations that go to the host, so that a program stays within a budget of
 * device memory at the least cost.
 *
 * A group goes to the host as a whole, because a rule of a policy matches the whole group. At
 * most one group may be split: only a part of each of its blocks goes to the host. A moment is a
 * point in the run. At each moment, the memory on the host must cover the excess over the budget,
 * and must fit in the host memory. This is a covering problem with knapsack constraints. A
 * depth-first search finds the best choice. After a limited number of steps, the search stops with
 * the best choice found so far. In the relaxed problem, every group may be split. The lower bound
 * of the search is the highest cost of the relaxed problem at any single moment. For one moment,
 * the relaxed problem has a solution that splits at most one group. So if a single moment decides,
 * one split group is enough.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_CLI_ADVISE_GROUPS = 48, SPW_CLI_ADVISE_MOMENTS = 64 };

/* A point in the run. All figures are in bytes. */
struct spw_cli_advise_moment {
    uint64_t excess;                      /* bytes that must leave the device */
    uint64_t held[SPW_CLI_ADVISE_GROUPS]; /* by each group */
};

struct spw_cli_advise_problem {
    size_t group_count, moment_count;
    uint64_t costs[SPW_CLI_ADVISE_GROUPS]; /* of each group on the host, in nanoseconds a step */
    bool can_split[SPW_CLI_ADVISE_GROUPS]; /* the group can be split */
    uint64_t split_costs[SPW_CLI_ADVISE_GROUPS]; /* added to costs[] if the group is split; the
                                                  * share of the sum is charged */
    struct spw_cli_advise_moment moments[SPW_CLI_ADVISE_MOMENTS];
    uint64_t host_bytes; /* size of the host memory */
};

struct spw_cli_advise_choice {
    bool on_host[SPW_CLI_ADVISE_GROUPS]; /* as a whole */
    int split;                           /* the group that is split; -1: none */
    double share;                        /* part of the split group's bytes and cost */
    uint64_t cost;
    uint64_t bound; /* a lower bound on the cost of any choice, if all groups could be split */
    bool proven;    /* it is proven that no other choice costs less */
};

/* Finds a choice. Returns false if none is found. In this case, ret_choice->proven is true if no
 * choice satisfies the constraints, and false if the search stopped early. */
bool spw_cli_advise_search(const struct spw_cli_advise_problem *problem,
                           struct spw_cli_advise_choice *ret_choice);
