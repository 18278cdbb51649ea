#include "cli/advise/recompute.h"

#include "common/minmax.h"

#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX

/* A choice replaces another one only if it costs less than this share of the other. Costs of equal
 * modules differ a little, and a choice of neighbours is easier to read. */
#define SHARE 0.97

struct choosing {
    const struct spw_cli_advise_modules_problem *problem;
    bool *best, *again, *maybe; /* sets of modules */
    uint64_t *gains;            /* by module */
    size_t *order;              /* of decisions: the most expensive first */
    double best_ns;
    unsigned asked;
    struct spw_cli_advise_point *points; /* of the first search; NULL: not wanted */
    size_t point_count;
};

uint64_t spw_cli_advise_modules_cost(const struct spw_cli_advise_modules_problem *problem,
                                     const bool *again)
{
    uint64_t cost = 0;

    for (size_t i = 0; i < problem->count; i++) {
        cost += again[i] ? problem->costs[i] : 0;
    }
    return cost;
}

/* Returns the bytes that do not fit if the set `again` is recomputed; with `maybe`, a lower
 * bound. */
static uint64_t excess_of(struct choosing *choosing, const bool *maybe, uint64_t *ret_gains)
{
    const struct spw_cli_advise_modules_problem *problem = choosing->problem;
    uint64_t peak = problem->peak(problem->context, choosing->again, maybe, ret_gains);

    choosing->asked++;
    return peak - spw_min(peak, problem->limit);
}

static void keep_if_best(struct choosing *choosing, double ns)
{
    if (ns < choosing->best_ns) {
        choosing->best_ns = ns;
        memcpy(choosing->best, choosing->again, choosing->problem->count * sizeof(*choosing->best));
    }
}

/* ---- the first choice ---- */

/* Returns the module with the least cost for each freed byte of the excess, or NONE if no module
 * frees memory. Of similar modules, returns the first one: when it runs again, the memory of the
 * later ones is free. */
static size_t cheapest(const struct choosing *choosing, uint64_t excess)
{
    size_t best = NONE;
    double least = 0;

    for (size_t i = 0; i < choosing->problem->count; i++) {
        uint64_t gain = choosing->again[i] ? 0 : spw_min(choosing->gains[i], excess);
        double rate = gain > 0 ? (double)(choosing->problem->costs[i] + 1) / (double)gain : 0;

        if (gain > 0 && (best == NONE || rate < least * SHARE)) {
            best = i;
            least = rate;
        }
    }
    return best;
}

static void add_point(struct choosing *choosing, size_t count, uint64_t excess, uint64_t cost_ns)
{
    const struct spw_cli_advise_point *last = choosing->points + choosing->point_count - 1;

    if (choosing->points != NULL && (choosing->point_count == 0 || excess < last->peak)) {
        choosing->points[choosing->point_count++] =
            (struct spw_cli_advise_point){.count = count, .peak = excess, .cost_ns = cost_ns};
    }
}

static void take_cheapest(struct choosing *choosing)
{
    uint64_t cost = 0, excess;
    size_t count = 0, next;

    do {
        excess = excess_of(choosing, NULL, choosing->gains);
        keep_if_best(choosing, (double)cost + (double)excess * choosing->problem->excess_ns);
        add_point(choosing, count++, excess, cost);
        next = excess > 0 ? cheapest(choosing, excess) : NONE;
        if (next != NONE) {
            choosing->again[next] = true;
            cost += choosing->problem->costs[next];
        }
    } while (next != NONE);
}

/* ---- the search ---- */

static void sort(struct choosing *choosing)
{
    const uint64_t *costs = choosing->problem->costs;

    for (size_t i = 0; i < choosing->problem->count; i++) {
        size_t at = i;

        for (; at > 0 && costs[choosing->order[at - 1]] < costs[i]; at--) {
            choosing->order[at] = choosing->order[at - 1];
        }
        choosing->order[at] = i;
    }
}

/* Decides about the modules from `place` on, which are all in the set `maybe`. `cost` is the cost
 * of the modules before `place`. */
static void descend(struct choosing *choosing, size_t place, double cost)
{
    const struct spw_cli_advise_modules_problem *problem = choosing->problem;
    double least = cost + (double)excess_of(choosing, choosing->maybe, NULL) * problem->excess_ns;
    size_t module;

    if (least >= choosing->best_ns * SHARE || choosing->asked >= SPW_CLI_ADVISE_ASKED) {
        return;
    }
    if (place == problem->count) {
        keep_if_best(choosing, least);
        return;
    }
    module = choosing->order[place];
    choosing->maybe[module] = false;
    descend(choosing, place + 1, cost);
    choosing->again[module] = true;
    descend(choosing, place + 1, cost + (double)problem->costs[module]);
    choosing->again[module] = false;
    choosing->maybe[module] = true;
}

static bool init(struct choosing *choosing, const struct spw_cli_advise_modules_problem *problem)
{
    *choosing = (struct choosing){
        .problem = problem,
        .best = calloc(problem->count + 1, sizeof(*choosing->best)),
        .again = calloc(problem->count + 1, sizeof(*choosing->again)),
        .maybe = calloc(problem->count + 1, sizeof(*choosing->maybe)),
        .gains = calloc(problem->count + 1, sizeof(*choosing->gains)),
        .order = calloc(problem->count + 1, sizeof(*choosing->order)),
        .best_ns = (double)UINT64_MAX,
    };
    return choosing->best != NULL && choosing->again != NULL && choosing->maybe != NULL &&
           choosing->gains != NULL && choosing->order != NULL;
}

static void fini(struct choosing *choosing)
{
    free(choosing->best);
    free(choosing->again);
    free(choosing->maybe);
    free(choosing->gains);
    free(choosing->order);
}

bool spw_cli_advise_modules_choose(const struct spw_cli_advise_modules_problem *problem,
                                   bool *ret_again, bool *ret_proven)
{
    struct choosing choosing;
    bool good = init(&choosing, problem);

    if (good) {
        take_cheapest(&choosing);
        sort(&choosing);
        memset(choosing.again, false, problem->count * sizeof(*choosing.again));
        memset(choosing.maybe, true, problem->count * sizeof(*choosing.maybe));
        descend(&choosing, 0, 0);
        memcpy(ret_again, choosing.best, problem->count * sizeof(*ret_again));
    }
    *ret_proven = choosing.asked < SPW_CLI_ADVISE_ASKED;
    fini(&choosing);
    return good;
}

size_t spw_cli_advise_modules_curve(const struct spw_cli_advise_modules_problem *problem,
                                    struct spw_cli_advise_point *ret_points)
{
    struct spw_cli_advise_modules_problem whole = *problem;
    struct choosing choosing;
    bool good;

    whole.limit = 0;
    good = init(&choosing, &whole);
    choosing.points = ret_points;
    if (good) {
        take_cheapest(&choosing);
    }
    fini(&choosing);
    return choosing.point_count;
}
