#include "cli/advise/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 400000 }; /* the most nodes of the search tree that are visited */

#define NONE SIZE_MAX

struct search {
    const struct spw_cli_advise_problem *problem;
    size_t order[SPW_CLI_ADVISE_GROUPS]; /* of decisions about groups: cheapest bytes first */
    /* For each moment, the groups sorted by cost per byte, the cheapest first. A group is given by
     * its place, which is an index in `order`. */
    size_t cheapest[SPW_CLI_ADVISE_MOMENTS][SPW_CLI_ADVISE_GROUPS];
    bool on_host[SPW_CLI_ADVISE_GROUPS];   /* by place in `order` */
    size_t split;                          /* the split group's place in `order`, or NONE */
    uint64_t left[SPW_CLI_ADVISE_MOMENTS]; /* excess that is not covered yet */
    uint64_t used[SPW_CLI_ADVISE_MOMENTS]; /* bytes on the host */
    uint64_t cost;
    struct spw_cli_advise_choice best;
    bool found;
    unsigned steps;
};

/* ---- the order ---- */

static uint64_t most_held(const struct spw_cli_advise_problem *problem, size_t group)
{
    uint64_t most = 0;

    for (size_t i = 0; i < problem->moment_count; i++) {
        uint64_t held = problem->moments[i].held[group];
        uint64_t useful = held < problem->moments[i].excess ? held : problem->moments[i].excess;

        most = useful > most ? useful : most;
    }
    return most;
}

static bool is_cheaper(uint64_t cost, uint64_t bytes, uint64_t other_cost, uint64_t other_bytes)
{
    double left = (double)cost * (double)other_bytes;
    double right = (double)other_cost * (double)bytes;

    return left < right || (left <= right && bytes > other_bytes);
}

static void sort_groups(struct search *search)
{
    const struct spw_cli_advise_problem *problem = search->problem;

    for (size_t i = 0; i < problem->group_count; i++) {
        size_t at = i;

        for (; at > 0 && is_cheaper(problem->costs[i], most_held(problem, i),
                                    problem->costs[search->order[at - 1]],
                                    most_held(problem, search->order[at - 1]));
             at--) {
            search->order[at] = search->order[at - 1];
        }
        search->order[at] = i;
    }
}

static void sort_of_moment(struct search *search, size_t moment)
{
    const struct spw_cli_advise_problem *problem = search->problem;
    const uint64_t *held = problem->moments[moment].held;
    size_t *list = search->cheapest[moment];

    for (size_t i = 0; i < problem->group_count; i++) {
        size_t group = search->order[i], at = i;

        for (; at > 0; at--) {
            size_t before = search->order[list[at - 1]];

            if (!is_cheaper(problem->costs[group], held[group], problem->costs[before],
                            held[before])) {
                break;
            }
            list[at] = list[at - 1];
        }
        list[at] = i;
    }
}

/* ---- the bound ---- */

/* Returns the least cost to cover the remaining excess at a moment, as if every group could be
 * split. Returns UINT64_MAX if the split group and the groups from `place` on are not enough. */
static uint64_t bound_of(const struct search *search, size_t moment, size_t place)
{
    const struct spw_cli_advise_problem *problem = search->problem;
    uint64_t left = search->left[moment];
    double cost = 0;

    for (size_t i = 0; i < problem->group_count && left > 0; i++) {
        size_t at = search->cheapest[moment][i];
        size_t group = search->order[at];
        uint64_t held = problem->moments[moment].held[group];

        if ((at < place && at != search->split) || held == 0) {
            continue;
        }
        if (held >= left) {
            cost += (double)problem->costs[group] * ((double)left / (double)held);
            left = 0;
        } else {
            cost += (double)problem->costs[group];
            left -= held;
        }
    }
    return left > 0 ? UINT64_MAX : (uint64_t)cost;
}

/* A lower bound for the cost of every choice; UINT64_MAX if all groups together do not suffice. */
static uint64_t bound_of_all(const struct search *search)
{
    uint64_t most = 0;

    for (size_t i = 0; i < search->problem->moment_count; i++) {
        uint64_t bound = bound_of(search, i, 0);

        most = bound > most ? bound : most;
    }
    return most;
}

/* Returns true if no choice for the groups from `place` on can improve on the best choice so
 * far. */
static bool is_hopeless(const struct search *search, size_t place)
{
    for (size_t i = 0; i < search->problem->moment_count; i++) {
        uint64_t bound = bound_of(search, i, place);

        if (bound == UINT64_MAX || (search->found && search->cost + bound >= search->best.cost)) {
            return true;
        }
    }
    return false;
}

/* ---- the search ---- */

/* Returns the share of the split group that covers the remaining excess at all moments. If the
 * group does not suffice, the result is greater than 1 or infinite. */
static double share_needed(const struct search *search)
{
    double share = 0;

    for (size_t i = 0; i < search->problem->moment_count; i++) {
        const struct spw_cli_advise_moment *moment = &search->problem->moments[i];
        uint64_t held = search->split != NONE ? moment->held[search->order[search->split]] : 0;
        double needed = search->left[i] == 0 ? 0
                        : held > 0           ? (double)search->left[i] / (double)held
                                             : INFINITY;

        share = needed > share ? needed : share;
    }
    return share;
}

/* Returns true if this share of the split group has room on the host at all moments. */
static bool part_has_room(const struct search *search, double share)
{
    for (size_t i = 0; share > 0 && i < search->problem->moment_count; i++) {
        const struct spw_cli_advise_moment *moment = &search->problem->moments[i];

        if ((double)search->used[i] + share * (double)moment->held[search->order[search->split]] >
            (double)search->problem->host_bytes) {
            return false;
        }
    }
    return true;
}

/* Keeps the choice if it meets the constraints and is the best so far. */
static void keep(struct search *search)
{
    double share = share_needed(search);
    uint64_t cost = search->cost;

    if (share > 1 || !part_has_room(search, share)) {
        return;
    }
    if (share > 0) {
        size_t group = search->order[search->split];

        cost += (uint64_t)(share * ((double)search->problem->costs[group] +
                                    (double)search->problem->split_costs[group]));
    }
    if (search->found && cost >= search->best.cost) {
        return;
    }
    memset(search->best.on_host, 0, sizeof(search->best.on_host));
    for (size_t i = 0; i < search->problem->group_count; i++) {
        search->best.on_host[search->order[i]] = search->on_host[i];
    }
    search->best.split = share > 0 ? (int)search->order[search->split] : -1;
    search->best.share = share;
    search->best.cost = cost;
    search->found = true;
}

static bool has_room(const struct search *search, size_t group)
{
    for (size_t i = 0; i < search->problem->moment_count; i++) {
        if (search->used[i] + search->problem->moments[i].held[group] >
            search->problem->host_bytes) {
            return false;
        }
    }
    return true;
}

static void descend(struct search *search, size_t place);

static void try_on_host(struct search *search, size_t place)
{
    const struct spw_cli_advise_problem *problem = search->problem;
    size_t group = search->order[place];
    uint64_t left[SPW_CLI_ADVISE_MOMENTS];

    if (!has_room(search, group)) {
        return;
    }
    memcpy(left, search->left, sizeof(left));
    for (size_t i = 0; i < problem->moment_count; i++) {
        uint64_t held = problem->moments[i].held[group];

        search->left[i] -= held < search->left[i] ? held : search->left[i];
        search->used[i] += held;
    }
    search->cost += problem->costs[group];
    search->on_host[place] = true;
    descend(search, place + 1);
    search->on_host[place] = false;
    search->cost -= problem->costs[group];
    for (size_t i = 0; i < problem->moment_count; i++) {
        search->used[i] -= problem->moments[i].held[group];
    }
    memcpy(search->left, left, sizeof(left));
}

static void try_in_part(struct search *search, size_t place)
{
    if (search->split == NONE && search->problem->can_split[search->order[place]]) {
        search->split = place;
        descend(search, place + 1);
        search->split = NONE;
    }
}

static void descend(struct search *search, size_t place)
{
    keep(search);
    if (place == search->problem->group_count || search->steps >= STEPS ||
        is_hopeless(search, place)) {
        return;
    }
    search->steps++;
    try_on_host(search, place);
    try_in_part(search, place);
    descend(search, place + 1);
}

bool spw_cli_advise_search(const struct spw_cli_advise_problem *problem,
                           struct spw_cli_advise_choice *ret_choice)
{
    struct search *search = calloc(1, sizeof(*search));
    uint64_t bound;
    bool found;

    *ret_choice = (struct spw_cli_advise_choice){.split = -1, .proven = false};
    if (search == NULL) {
        return false;
    }
    search->problem = problem;
    search->split = NONE;
    sort_groups(search);
    for (size_t i = 0; i < problem->moment_count; i++) {
        search->left[i] = problem->moments[i].excess;
        sort_of_moment(search, i);
    }
    bound = bound_of_all(search);
    descend(search, 0);
    found = search->found;
    *ret_choice = search->best;
    ret_choice->bound = bound;
    ret_choice->proven = search->steps < STEPS;
    free(search);
    return found;
}
