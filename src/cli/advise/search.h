/* Which groups of allocations go to the host, so that a program stays within a budget of device
 * memory at the least cost.
 *
 * A group is placed as a whole, as a rule of a policy matches all of it; of one group, a part of
 * each block may go. A moment is a point of the run. At each moment the memory on the host must
 * make up for what is beyond the budget, and must find room on the host. This is a covering problem
 * with knapsack constraints. Depth-first search with a lower bound (the relaxed problem of the
 * moment that lacks most, in which a part of any group may go) finds the best choice, or, after a
 * number of steps, the best that it met. One group in part suffices where one moment decides: the
 * relaxed problem's answer has no more.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_CLI_ADVISE_GROUPS = 48, SPW_CLI_ADVISE_MOMENTS = 64 };

/* A point of the run; bytes. */
struct spw_cli_advise_moment {
    uint64_t excess;                      /* that must leave the device */
    uint64_t held[SPW_CLI_ADVISE_GROUPS]; /* by each group */
};

struct spw_cli_advise_problem {
    size_t group_count, moment_count;
    uint64_t costs[SPW_CLI_ADVISE_GROUPS]; /* of each group on the host, in nanoseconds a step */
    bool can_split[SPW_CLI_ADVISE_GROUPS]; /* a part of the group's blocks can go */
    uint64_t split_costs[SPW_CLI_ADVISE_GROUPS]; /* of a part, besides its part of costs[]: what it
                                                  * would be if the part were all */
    struct spw_cli_advise_moment moments[SPW_CLI_ADVISE_MOMENTS];
    uint64_t host_bytes; /* room on the host */
};

struct spw_cli_advise_choice {
    bool on_host[SPW_CLI_ADVISE_GROUPS]; /* as a whole */
    int split;                           /* the group that goes in part; -1: none */
    double share;                        /* of its bytes, and of its cost */
    uint64_t cost;
    uint64_t bound; /* what any choice costs at least, if parts of all groups could go */
    bool proven;    /* no other choice costs less */
};

/* Finds a choice. False when no choice meets the constraints, or none was found (then
 * ret_choice->proven tells which). */
bool spw_cli_advise_search(const struct spw_cli_advise_problem *problem,
                           struct spw_cli_advise_choice *ret_choice);
