#include "cli/advise/plan.h"

#include "cli/advise/cost.h"
#include "cli/advise/recompute.h"
#include "cli/advise/rules.h"
#include "cli/advise/timeline.h"
#include "common/host_share.h"
#include "common/minmax.h"

#include <stdlib.h>
#include <string.h>

/* How much of each block is on the host. */
struct placing {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_groups groups;
    uint64_t *host_bytes; /* for each kind, the bytes of a block that are on the host */
    uint64_t *bytes;      /* by kind, scratch */
    const bool *again;    /* the modules that are recomputed; NULL: none */
};

static bool init(struct placing *placing, const struct spw_cli_advise_history *history)
{
    *placing = (struct placing){
        .history = history,
        .host_bytes = calloc(history->kind_count, sizeof(*placing->host_bytes)),
        .bytes = calloc(history->kind_count, sizeof(*placing->bytes)),
    };
    return spw_cli_advise_groups_make(history, SPW_CLI_ADVISE_GROUPS, &placing->groups) &&
           placing->host_bytes != NULL && placing->bytes != NULL;
}

static void fini(struct placing *placing)
{
    spw_cli_advise_groups_fini(&placing->groups);
    free(placing->host_bytes);
    free(placing->bytes);
}

static void take_groups(const struct placing *placing, const struct spw_cli_advise_goal *goal,
                        struct spw_cli_advise_plan *plan)
{
    plan->group_count = placing->groups.count;
    for (size_t i = 0; i < plan->group_count; i++) {
        plan->groups[i] = placing->groups.list[i];
        plan->groups[i].cost_ns = spw_cli_advise_use_ns(plan->groups[i].link_bytes, goal->link);
    }
}

/* ---- modules ---- */

static void sum_modules(const struct spw_cli_advise_modules_problem *problem,
                        struct spw_cli_advise_plan *plan)
{
    plan->again_ns = spw_cli_advise_modules_cost(problem, plan->again);
    for (size_t i = 0; i < problem->count; i++) {
        plan->again_count += plan->again[i];
    }
}

/* The state of a choice of modules. */
struct modules {
    struct spw_cli_advise_timeline timeline;
    struct spw_cli_advise_modules_problem problem;
    uint64_t *costs;
};

/* Returns false if memory runs out. */
static bool modules_init(struct modules *modules, const struct spw_cli_advise_history *history,
                         const struct spw_cli_advise_goal *goal, uint64_t limit)
{
    size_t count = history->module_count;

    modules->costs = calloc(count + 1, sizeof(*modules->costs));
    for (size_t i = 0; modules->costs != NULL && i < count; i++) {
        modules->costs[i] = (uint64_t)(history->modules[i].share * (double)goal->step_ns);
    }
    modules->problem = (struct spw_cli_advise_modules_problem){
        .count = count,
        .costs = modules->costs,
        .limit = limit,
        .excess_ns = spw_cli_advise_excess_ns(goal->link),
        .peak = spw_cli_advise_timeline_peak,
        .context = &modules->timeline,
    };
    return spw_cli_advise_timeline_make(history, NULL, &modules->timeline) &&
           modules->costs != NULL;
}

static void modules_fini(struct modules *modules)
{
    spw_cli_advise_timeline_fini(&modules->timeline);
    free(modules->costs);
}

/* Chooses the modules that are recomputed. Returns false if memory runs out. */
static bool choose_modules(struct placing *placing, const struct spw_cli_advise_goal *goal,
                           struct spw_cli_advise_plan *plan)
{
    struct modules modules;
    bool good = modules_init(&modules, placing->history, goal, plan->live_bytes);

    placing->again = plan->again = calloc(placing->history->module_count + 1, sizeof(*plan->again));
    good = good && plan->again != NULL &&
           spw_cli_advise_modules_choose(&modules.problem, plan->again, &plan->proven);
    if (good) {
        sum_modules(&modules.problem, plan);
    }
    modules_fini(&modules);
    return good;
}

size_t spw_cli_advise_plan_curve(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 struct spw_cli_advise_point **ret_points)
{
    struct modules modules;
    bool good = modules_init(&modules, history, goal, 0);
    size_t count = 0;

    *ret_points = calloc(history->module_count + 1, sizeof(**ret_points));
    if (good && *ret_points != NULL) {
        count = spw_cli_advise_modules_curve(&modules.problem, *ret_points);
    }
    modules_fini(&modules);
    return count;
}

static bool find_extent(const struct placing *placing, struct spw_cli_advise_extent *ret_extent)
{
    return spw_cli_advise_timeline_extent_of(placing->history, placing->host_bytes, placing->again,
                                             ret_extent);
}

/* ---- the choice ---- */

static void add_moment(struct placing *placing, struct spw_cli_advise_problem *problem,
                       uint64_t live_bytes, size_t at)
{
    struct spw_cli_advise_moment *moment = &problem->moments[problem->moment_count++];
    uint64_t total = 0;

    memset(moment, 0, sizeof(*moment));
    spw_cli_advise_timeline_at(placing->history, placing->again, at, placing->bytes);
    for (size_t i = 0; i < placing->history->kind_count; i++) {
        total += placing->bytes[i];
        if (placing->groups.of_kind[i] >= 0) {
            moment->held[placing->groups.of_kind[i]] += placing->bytes[i];
        }
    }
    moment->excess = total > live_bytes ? total - live_bytes : 0;
}

static uint64_t host_bytes_of(uint64_t bytes, unsigned percent)
{
    return percent == 100 ? bytes
                          : spw_host_share_bytes(bytes, percent * 10, SPW_CLI_ADVISE_GRANULE);
}

/* `percents` gives, for each group, the part of a block that goes to the host. */
static void place(struct placing *placing, const unsigned *percents)
{
    for (size_t i = 0; i < placing->history->kind_count; i++) {
        int group = placing->groups.of_kind[i];

        placing->host_bytes[i] =
            group >= 0 ? host_bytes_of(placing->history->kinds[i].bytes, percents[group]) : 0;
    }
}

/* Returns the percentage for a rule that places at least this share of each block of a group on
 * the host, in whole granules. Returns 100 if this is the whole block. */
static unsigned percent_of(const struct placing *placing, int group, double share)
{
    unsigned percent = (unsigned)(share * 100);
    bool all = true;

    for (size_t i = 0; percent < 100 && i < placing->history->kind_count; i++) {
        uint64_t bytes = placing->history->kinds[i].bytes;

        while (placing->groups.of_kind[i] == group && percent < 100 &&
               (double)host_bytes_of(bytes, percent) < share * (double)bytes) {
            percent++;
        }
    }
    for (size_t i = 0; i < placing->history->kind_count; i++) {
        uint64_t bytes = placing->history->kinds[i].bytes;

        all &= placing->groups.of_kind[i] != group || host_bytes_of(bytes, percent) == bytes;
    }
    return all ? 100 : percent;
}

/* Returns the share of a group's blocks that is placed on the host. The share is an average,
 * weighted by size. */
static double placed_share(const struct placing *placing, int group)
{
    double bytes = 0, host_bytes = 0;

    for (size_t i = 0; i < placing->history->kind_count; i++) {
        if (placing->groups.of_kind[i] == group) {
            bytes += (double)placing->history->kinds[i].bytes;
            host_bytes += (double)placing->host_bytes[i];
        }
    }
    return bytes > 0 ? host_bytes / bytes : 0;
}

static void read_choice(const struct placing *placing, const struct spw_cli_advise_choice *choice,
                        unsigned *ret_percents)
{
    for (size_t i = 0; i < SPW_CLI_ADVISE_GROUPS; i++) {
        ret_percents[i] = choice->on_host[i] ? 100 : 0;
    }
    if (choice->split >= 0) {
        ret_percents[choice->split] = percent_of(placing, choice->split, choice->share);
    }
}

/* Makes choices until one choice holds in the whole run. If a choice fails at a moment, adds this
 * moment to the problem. *ret_cost is the cost of the choice. */
static bool choose(struct placing *placing, const struct spw_cli_advise_goal *goal,
                   struct spw_cli_advise_plan *plan, uint64_t *ret_cost)
{
    struct spw_cli_advise_choice choice;
    struct spw_cli_advise_extent extent;
    unsigned percents[SPW_CLI_ADVISE_GROUPS] = {0};
    struct spw_cli_advise_problem *problem = calloc(1, sizeof(*problem));
    bool found = false, holds = false;

    memset(placing->host_bytes, 0, placing->history->kind_count * sizeof(*placing->host_bytes));
    if (problem == NULL || !find_extent(placing, &extent)) {
        free(problem);
        return false;
    }
    problem->host_bytes = goal->host_bytes;
    problem->group_count = plan->group_count;
    for (size_t i = 0; i < plan->group_count; i++) {
        problem->costs[i] = plan->groups[i].cost_ns;
        problem->can_split[i] = plan->groups[i].least >= SPW_CLI_ADVISE_SPLIT;
        problem->split_costs[i] = spw_cli_advise_remap_ns(plan->groups[i].allocated);
    }
    add_moment(placing, problem, plan->live_bytes, extent.device_moment);
    while (!holds && (found = spw_cli_advise_search(problem, &choice)) &&
           problem->moment_count < SPW_CLI_ADVISE_MOMENTS) {
        read_choice(placing, &choice, percents);
        place(placing, percents);
        if (!find_extent(placing, &extent)) {
            break;
        }
        holds = extent.device_bytes <= plan->live_bytes && extent.host_bytes <= goal->host_bytes;
        if (!holds) {
            add_moment(placing, problem, plan->live_bytes,
                       extent.device_bytes > plan->live_bytes ? extent.device_moment
                                                              : extent.host_moment);
        }
    }
    free(problem);
    plan->proven = choice.proven;
    plan->bound_ns = choice.bound;
    *ret_cost = choice.cost;
    for (size_t i = 0; i < plan->group_count; i++) {
        plan->groups[i].percent = percents[i];
        plan->groups[i].cost_ns +=
            percents[i] < 100 ? spw_cli_advise_remap_ns(plan->groups[i].allocated) : 0;
        plan->groups[i].share = placed_share(placing, (int)i);
    }
    return found && holds;
}

static bool find_nearest(struct placing *placing, struct spw_cli_advise_plan *plan)
{
    unsigned all[SPW_CLI_ADVISE_GROUPS];
    struct spw_cli_advise_extent extent;

    for (size_t i = 0; i < SPW_CLI_ADVISE_GROUPS; i++) {
        all[i] = 100;
    }
    place(placing, all);
    if (!find_extent(placing, &extent)) {
        return false;
    }
    plan->nearest_bytes = extent.device_bytes;
    plan->host_is_short = plan->nearest_bytes <= plan->live_bytes;
    return true;
}

/* Computes the figures from the policy, which is parsed by the library's code. */
static bool predict(struct placing *placing, const struct spw_cli_advise_goal *goal,
                    struct spw_cli_advise_plan *plan)
{
    struct spw_cli_advise_extent extent;

    if (!spw_cli_advise_rules_apply(plan->policy, placing->history, placing->host_bytes) ||
        !find_extent(placing, &extent)) {
        return false;
    }
    plan->device_bytes = extent.device_bytes - plan->spilled_bytes;
    plan->host_bytes = extent.host_bytes + plan->spilled_bytes;
    for (size_t i = 1; i < placing->history->kind_count; i++) {
        const struct spw_cli_advise_kind *kind = &placing->history->kinds[i];

        double share = (double)placing->host_bytes[i] / (double)kind->bytes;

        plan->link_bytes += placing->groups.link_bytes[i] * share;
        if (placing->host_bytes[i] < kind->bytes) {
            plan->cost_ns += spw_cli_advise_remap_ns(
                spw_cli_advise_history_allocated(placing->history, kind) * share);
        }
    }
    plan->cost_ns += spw_cli_advise_use_ns(plan->link_bytes, goal->link) + plan->again_ns +
                     spw_cli_advise_default_ns(plan->spilled_bytes, goal->link);
    return true;
}

/* Leaves all groups on the device. */
static void place_none(struct spw_cli_advise_plan *plan)
{
    for (size_t i = 0; i < plan->group_count; i++) {
        plan->groups[i].percent = 0;
        plan->groups[i].share = 0;
    }
}

/* Modules are recomputed, but some memory still does not fit. Places this memory on the host or
 * lets it spill, whichever costs less. Returns false if no rules make the program fit. */
static bool place_rest(struct placing *placing, const struct spw_cli_advise_goal *goal,
                       struct spw_cli_advise_plan *plan, uint64_t excess)
{
    uint64_t cost, spilling = spw_cli_advise_default_ns(excess, goal->link);
    bool placed = excess > 0 && choose(placing, goal, plan, &cost);

    if (plan->again_count > 0 && excess > 0 && excess <= goal->host_bytes &&
        (!placed || spilling < cost)) {
        plan->spilled_bytes = excess;
        placed = false;
    }
    if (!placed) {
        place_none(plan);
    }
    return placed || excess == 0 || plan->spilled_bytes > 0;
}

static bool make(struct placing *placing, const struct spw_cli_advise_goal *goal,
                 struct spw_cli_advise_plan *plan)
{
    struct spw_cli_advise_extent extent;

    take_groups(placing, goal, plan);
    if (placing->history->peak <= plan->live_bytes) {
        plan->device_bytes = placing->history->peak;
        return true;
    }
    plan->default_ns =
        spw_cli_advise_default_ns(placing->history->peak - plan->live_bytes, goal->link);
    if ((goal->recompute && !choose_modules(placing, goal, plan)) ||
        !find_extent(placing, &extent)) {
        return false;
    }
    if (!place_rest(placing, goal, plan,
                    extent.device_bytes - spw_min(extent.device_bytes, plan->live_bytes))) {
        plan->answer = SPW_CLI_ADVISE_IMPOSSIBLE;
        return find_nearest(placing, plan);
    }
    plan->answer = SPW_CLI_ADVISE_PLACED;
    plan->policy = spw_cli_advise_rules_make(
        placing->history, &(struct spw_cli_advise_decisions){.groups = plan->groups,
                                                             .group_count = plan->group_count,
                                                             .again = plan->again,
                                                             .again_ns = plan->again_ns,
                                                             .budget_bytes = goal->budget_bytes,
                                                             .live_bytes = plan->live_bytes});
    return plan->policy != NULL && predict(placing, goal, plan);
}

bool spw_cli_advise_plan_make(const struct spw_cli_advise_history *history,
                              const struct spw_cli_advise_goal *goal,
                              struct spw_cli_advise_plan *ret_plan)
{
    struct placing placing;
    uint64_t budget =
        goal->budget_bytes > goal->kept_bytes ? goal->budget_bytes - goal->kept_bytes : 0;
    bool good;

    /* A compound literal would make a copy on the stack. */
    memset(ret_plan, 0, sizeof(*ret_plan));
    ret_plan->answer = SPW_CLI_ADVISE_FITS;
    ret_plan->live_bytes = spw_cli_advise_live_bytes(budget);
    good = init(&placing, history) && make(&placing, goal, ret_plan);
    fini(&placing);
    return good;
}

void spw_cli_advise_plan_fini(struct spw_cli_advise_plan *plan)
{
    cJSON_Delete(plan->policy);
    free(plan->again);
    plan->policy = NULL;
    plan->again = NULL;
}
