#include "cli/advise/plan.h"

#include "cli/advise/cost.h"
#include "cli/advise/rules.h"
#include "common/host_share.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIZES = 8, /* a place with more sizes is one group: they differ from step to step */
    PLACES = 4096,
};

/* The kinds, sorted into groups. */
struct sorting {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_where *places; /* distinct */
    unsigned *sizes;                     /* kinds of each place */
    size_t place_count;
    int *place_of_kind; /* -1: no rule can name it */
    struct spw_cli_advise_group *groups;
    size_t group_count;
    int *group_of_kind;   /* -1 */
    uint64_t *host_bytes; /* of each block on the host, by kind */
    uint64_t *bytes;      /* by kind, scratch */
};

static bool init(struct sorting *sorting, const struct spw_cli_advise_history *history)
{
    size_t kinds = history->kind_count;

    *sorting = (struct sorting){
        .history = history,
        .places = calloc(PLACES, sizeof(*sorting->places)),
        .sizes = calloc(PLACES, sizeof(*sorting->sizes)),
        .place_of_kind = calloc(kinds, sizeof(*sorting->place_of_kind)),
        .groups = calloc(kinds, sizeof(*sorting->groups)),
        .group_of_kind = calloc(kinds, sizeof(*sorting->group_of_kind)),
        .host_bytes = calloc(kinds, sizeof(*sorting->host_bytes)),
        .bytes = calloc(kinds, sizeof(*sorting->bytes)),
    };
    return sorting->places != NULL && sorting->sizes != NULL && sorting->place_of_kind != NULL &&
           sorting->groups != NULL && sorting->group_of_kind != NULL &&
           sorting->host_bytes != NULL && sorting->bytes != NULL;
}

static void fini(struct sorting *sorting)
{
    free(sorting->places);
    free(sorting->sizes);
    free(sorting->place_of_kind);
    free(sorting->groups);
    free(sorting->group_of_kind);
    free(sorting->host_bytes);
    free(sorting->bytes);
}

/* ---- groups ---- */

static int find_place(struct sorting *sorting, const struct spw_cli_advise_where *where)
{
    for (size_t i = 0; i < sorting->place_count; i++) {
        if (spw_cli_advise_where_is_same(&sorting->places[i], where)) {
            return (int)i;
        }
    }
    if (sorting->place_count == PLACES) {
        return -1;
    }
    sorting->places[sorting->place_count] = *where;
    return (int)sorting->place_count++;
}

/* A library may use its workspace, such as cuBLAS's, by addresses that no argument names: what was
 * never seen in use is not known to be idle, and stays on the device. */
static bool is_seen(const struct spw_cli_advise_history *history, size_t kind)
{
    return !history->has_uses || history->kinds[kind].uses > 0;
}

static void find_places(struct sorting *sorting)
{
    sorting->place_of_kind[0] = -1;
    for (size_t i = 1; i < sorting->history->kind_count; i++) {
        struct spw_cli_advise_where where;
        bool named = is_seen(sorting->history, i) &&
                     spw_cli_advise_where_of(sorting->history->kinds[i].site, &where);

        sorting->place_of_kind[i] = named ? find_place(sorting, &where) : -1;
        if (sorting->place_of_kind[i] >= 0) {
            sorting->sizes[sorting->place_of_kind[i]]++;
        }
    }
}

static int find_group(struct sorting *sorting, size_t kind)
{
    int place = sorting->place_of_kind[kind];
    uint64_t bytes = sorting->history->kinds[kind].bytes;
    bool together = sorting->sizes[place] > SIZES;
    struct spw_cli_advise_group *group = sorting->groups;

    for (; group < sorting->groups + sorting->group_count; group++) {
        if (spw_cli_advise_where_is_same(&group->where, &sorting->places[place]) &&
            (together || group->least == bytes)) {
            return (int)(group - sorting->groups);
        }
    }
    *group = (struct spw_cli_advise_group){.where = sorting->places[place],
                                           .least = bytes,
                                           .most = bytes,
                                           .site = sorting->history->kinds[kind].site};
    return (int)sorting->group_count++;
}

static void add_kind(struct spw_cli_advise_group *group, const struct spw_cli_advise_kind *kind)
{
    group->least = kind->bytes < group->least ? kind->bytes : group->least;
    group->most = kind->bytes > group->most ? kind->bytes : group->most;
    group->link_bytes += (double)kind->link_bytes;
    group->uses += (double)kind->uses;
    group->at_peak += kind->at_peak;
}

/* The most that each group ever holds. */
static void find_highest(struct sorting *sorting)
{
    uint64_t *held = sorting->bytes;

    memset(held, 0, sorting->history->kind_count * sizeof(*held));
    for (size_t i = 0; i < sorting->history->change_count; i++) {
        const struct spw_cli_advise_change *change = &sorting->history->changes[i];
        int group = sorting->group_of_kind[change->kind];

        if (group >= 0) {
            held[group] += (uint64_t)change->bytes;
            if (held[group] > sorting->groups[group].highest) {
                sorting->groups[group].highest = held[group];
            }
        }
    }
}

static int compare_groups(const void *left, const void *right)
{
    const struct spw_cli_advise_group *a = left, *b = right;

    return a->highest < b->highest ? 1 : a->highest > b->highest ? -1 : 0;
}

static void find_all_groups(struct sorting *sorting)
{
    for (size_t i = 0; i < sorting->history->kind_count; i++) {
        sorting->group_of_kind[i] = sorting->place_of_kind[i] < 0 ? -1 : find_group(sorting, i);
        if (sorting->group_of_kind[i] >= 0) {
            add_kind(&sorting->groups[sorting->group_of_kind[i]], &sorting->history->kinds[i]);
        }
    }
}

/* Keeps the groups that hold most. */
static void make_groups(struct sorting *sorting, const struct spw_cli_advise_goal *goal,
                        struct spw_cli_advise_plan *plan)
{
    double steps = sorting->history->steps > 0 ? sorting->history->steps : 1;

    find_places(sorting);
    find_all_groups(sorting);
    find_highest(sorting);
    qsort(sorting->groups, sorting->group_count, sizeof(*sorting->groups), compare_groups);
    sorting->group_count =
        sorting->group_count < SPW_CLI_ADVISE_GROUPS ? sorting->group_count : SPW_CLI_ADVISE_GROUPS;
    for (size_t i = 0; i < sorting->group_count; i++) {
        struct spw_cli_advise_group *group = &sorting->groups[i];

        group->link_bytes /= steps;
        group->uses = group->highest > 0 ? group->link_bytes / (double)group->highest : 0;
        group->cost_ns = spw_cli_advise_use_ns(group->link_bytes, goal->link);
        plan->groups[i] = *group;
    }
    plan->group_count = sorting->group_count;
    /* The order has changed. */
    for (size_t k = 0; k < sorting->history->kind_count; k++) {
        sorting->group_of_kind[k] = -1;
        for (size_t i = 0; sorting->place_of_kind[k] >= 0 && i < plan->group_count; i++) {
            const struct spw_cli_advise_group *group = &plan->groups[i];
            uint64_t bytes = sorting->history->kinds[k].bytes;

            if (bytes >= group->least && bytes <= group->most &&
                spw_cli_advise_where_is_same(&group->where,
                                             &sorting->places[sorting->place_of_kind[k]])) {
                sorting->group_of_kind[k] = (int)i;
            }
        }
    }
}

/* ---- the choice ---- */

static void add_moment(struct sorting *sorting, struct spw_cli_advise_problem *problem,
                       uint64_t live_bytes, size_t change)
{
    struct spw_cli_advise_moment *moment = &problem->moments[problem->moment_count++];
    uint64_t total = 0;

    memset(moment, 0, sizeof(*moment));
    spw_cli_advise_history_at(sorting->history, change, sorting->bytes);
    for (size_t i = 0; i < sorting->history->kind_count; i++) {
        total += sorting->bytes[i];
        if (sorting->group_of_kind[i] >= 0) {
            moment->held[sorting->group_of_kind[i]] += sorting->bytes[i];
        }
    }
    moment->excess = total > live_bytes ? total - live_bytes : 0;
}

static uint64_t host_bytes_of(uint64_t bytes, unsigned percent)
{
    return percent == 100 ? bytes
                          : spw_host_share_bytes(bytes, percent * 10, SPW_CLI_ADVISE_GRANULE);
}

/* `percents`: of each block on the host, by group. */
static void place(struct sorting *sorting, const unsigned *percents)
{
    for (size_t i = 0; i < sorting->history->kind_count; i++) {
        int group = sorting->group_of_kind[i];

        sorting->host_bytes[i] =
            group >= 0 ? host_bytes_of(sorting->history->kinds[i].bytes, percents[group]) : 0;
    }
}

/* The least percentage that places this share of each block of a group on the host, where a part of
 * a block is whole granules; 100 if that is all of each block. */
static unsigned percent_of(const struct sorting *sorting, int group, double share)
{
    unsigned percent = (unsigned)(share * 100);
    bool all = true;

    for (size_t i = 0; percent < 100 && i < sorting->history->kind_count; i++) {
        uint64_t bytes = sorting->history->kinds[i].bytes;

        while (sorting->group_of_kind[i] == group && percent < 100 &&
               (double)host_bytes_of(bytes, percent) < share * (double)bytes) {
            percent++;
        }
    }
    for (size_t i = 0; i < sorting->history->kind_count; i++) {
        uint64_t bytes = sorting->history->kinds[i].bytes;

        all &= sorting->group_of_kind[i] != group || host_bytes_of(bytes, percent) == bytes;
    }
    return all ? 100 : percent;
}

/* The share of a block of a group that is placed on the host; of all sizes, the mean. */
static double placed_share(const struct sorting *sorting, int group)
{
    double bytes = 0, host_bytes = 0;

    for (size_t i = 0; i < sorting->history->kind_count; i++) {
        if (sorting->group_of_kind[i] == group) {
            bytes += (double)sorting->history->kinds[i].bytes;
            host_bytes += (double)sorting->host_bytes[i];
        }
    }
    return bytes > 0 ? host_bytes / bytes : 0;
}

static void read_choice(const struct sorting *sorting, const struct spw_cli_advise_choice *choice,
                        unsigned *ret_percents)
{
    for (size_t i = 0; i < SPW_CLI_ADVISE_GROUPS; i++) {
        ret_percents[i] = choice->on_host[i] ? 100 : 0;
    }
    if (choice->split >= 0) {
        ret_percents[choice->split] = percent_of(sorting, choice->split, choice->share);
    }
}

/* Moments are added until the choice holds in the whole run. */
static bool choose(struct sorting *sorting, const struct spw_cli_advise_goal *goal,
                   struct spw_cli_advise_plan *plan)
{
    struct spw_cli_advise_choice choice;
    unsigned percents[SPW_CLI_ADVISE_GROUPS] = {0};
    struct spw_cli_advise_problem *problem = calloc(1, sizeof(*problem));
    bool found = false, holds = false;

    if (problem == NULL) {
        return false;
    }
    problem->host_bytes = goal->host_bytes;
    problem->group_count = plan->group_count;
    for (size_t i = 0; i < plan->group_count; i++) {
        problem->costs[i] = plan->groups[i].cost_ns;
        problem->can_split[i] = plan->groups[i].least >= SPW_CLI_ADVISE_SPLIT;
    }
    add_moment(sorting, problem, plan->live_bytes, sorting->history->peak_change);
    while (!holds && (found = spw_cli_advise_search(problem, &choice)) &&
           problem->moment_count < SPW_CLI_ADVISE_MOMENTS) {
        struct spw_cli_advise_extent extent;

        read_choice(sorting, &choice, percents);
        place(sorting, percents);
        extent = spw_cli_advise_history_extent(sorting->history, sorting->host_bytes);
        holds = extent.device_bytes <= plan->live_bytes && extent.host_bytes <= goal->host_bytes;
        if (!holds) {
            add_moment(sorting, problem, plan->live_bytes,
                       extent.device_bytes > plan->live_bytes ? extent.device_change
                                                              : extent.host_change);
        }
    }
    free(problem);
    plan->proven = choice.proven;
    plan->bound_ns = choice.bound;
    for (size_t i = 0; i < plan->group_count; i++) {
        plan->groups[i].percent = percents[i];
        plan->groups[i].share = placed_share(sorting, (int)i);
    }
    return found && holds;
}

/* What the device holds with all groups on the host. */
static void find_nearest(struct sorting *sorting, struct spw_cli_advise_plan *plan)
{
    unsigned all[SPW_CLI_ADVISE_GROUPS];

    for (size_t i = 0; i < SPW_CLI_ADVISE_GROUPS; i++) {
        all[i] = 100;
    }
    place(sorting, all);
    plan->nearest_bytes =
        spw_cli_advise_history_extent(sorting->history, sorting->host_bytes).device_bytes;
    plan->host_is_short = plan->nearest_bytes <= plan->live_bytes;
}

/* The figures with the rules as the policy's own code reads them. */
static bool predict(struct sorting *sorting, const struct spw_cli_advise_goal *goal,
                    struct spw_cli_advise_plan *plan)
{
    struct spw_cli_advise_extent extent;
    double steps = sorting->history->steps > 0 ? sorting->history->steps : 1;

    if (!spw_cli_advise_rules_apply(plan->policy, sorting->history, sorting->host_bytes)) {
        return false;
    }
    extent = spw_cli_advise_history_extent(sorting->history, sorting->host_bytes);
    plan->device_bytes = extent.device_bytes;
    plan->host_bytes = extent.host_bytes;
    for (size_t i = 1; i < sorting->history->kind_count; i++) {
        const struct spw_cli_advise_kind *kind = &sorting->history->kinds[i];

        plan->link_bytes +=
            (double)kind->link_bytes / steps * (double)sorting->host_bytes[i] / (double)kind->bytes;
    }
    plan->cost_ns = spw_cli_advise_use_ns(plan->link_bytes, goal->link);
    return true;
}

static bool make(struct sorting *sorting, const struct spw_cli_advise_goal *goal,
                 struct spw_cli_advise_plan *plan)
{
    make_groups(sorting, goal, plan);
    if (sorting->history->peak <= plan->live_bytes) {
        plan->device_bytes = sorting->history->peak;
        return true;
    }
    plan->default_ns =
        spw_cli_advise_default_ns(sorting->history->peak - plan->live_bytes, goal->link);
    if (!choose(sorting, goal, plan)) {
        plan->answer = SPW_CLI_ADVISE_IMPOSSIBLE;
        find_nearest(sorting, plan);
        return true;
    }
    plan->answer = SPW_CLI_ADVISE_PLACED;
    plan->policy = spw_cli_advise_rules_make(sorting->history, goal, plan);
    return plan->policy != NULL && predict(sorting, goal, plan);
}

bool spw_cli_advise_plan_make(const struct spw_cli_advise_history *history,
                              const struct spw_cli_advise_goal *goal,
                              struct spw_cli_advise_plan *ret_plan)
{
    struct sorting sorting;
    uint64_t budget =
        goal->budget_bytes > goal->kept_bytes ? goal->budget_bytes - goal->kept_bytes : 0;
    bool good;

    *ret_plan = (struct spw_cli_advise_plan){
        .answer = SPW_CLI_ADVISE_FITS,
        .live_bytes = budget / 1000 * SPW_CLI_ADVISE_LIVE_PERMILLE,
    };
    good = init(&sorting, history) && make(&sorting, goal, ret_plan);
    fini(&sorting);
    return good;
}

void spw_cli_advise_plan_fini(struct spw_cli_advise_plan *plan)
{
    cJSON_Delete(plan->policy);
    plan->policy = NULL;
}
