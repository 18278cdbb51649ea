#include "cli/advise/settings.h"

#include "cli/advise/cost.h"
#include "cli/advise/reader.h"
#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "system/create.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_budget(const struct spw_cli_advise_settings *settings)
{
    return settings->goal.budget_bytes > 0 || settings->budget_permille > 0;
}

int spw_cli_advise_write_policy(const struct spw_cli_advise_settings *settings,
                                struct spw_cli_advise_plan *plan)
{
    cJSON *policy = plan->policy;

    plan->policy = NULL;
    if (!spw_cli_json_write(policy, settings->output)) {
        spw_cli_complain("advise", "%s: %s", settings->output,
                         spw_create_problem(settings->output));
        return SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_print(stdout, "written: %s (spillway run --policy %s -- ...)\n", settings->output,
                  settings->output);
    return SPW_CLI_EXIT_OK;
}

bool spw_cli_advise_warn_if_slow(double ratio)
{
    enum { SLOW = 3 };

    if (ratio > SLOW) {
        printf("with this policy, a step takes %.1f times as long: the program runs, but too "
               "slowly to train. The changes of the script above, such as a smaller batch, or a "
               "card with more memory (spillway fit) usually cost less\n",
               ratio);
    }
    return ratio > SLOW;
}

bool spw_cli_advise_is_too_slow(const struct spw_cli_advise_settings *settings, double ratio)
{
    if (settings->slowdown == 0 || ratio <= settings->slowdown) {
        return false;
    }
    printf("that is more than --slowdown=%g allows: nothing is written\n", settings->slowdown);
    return true;
}

bool spw_cli_advise_may_write(const struct spw_cli_advise_settings *settings, double ratio)
{
    if (spw_cli_advise_is_too_slow(settings, ratio)) {
        return false;
    }
    if (!spw_cli_advise_warn_if_slow(ratio) || settings->slowdown > 0) {
        return true;
    }
    printf("nothing is written; --slowdown=%.0f asks for the policy\n", ratio + 1);
    return false;
}

/* Returns the lowest peak at which a step takes no longer than --slowdown allows. */
static uint64_t lowest_peak(const struct spw_cli_advise_settings *settings)
{
    const struct spw_cli_advise_point *points = settings->points;
    uint64_t peak = points[0].peak;

    for (size_t i = 0; i < settings->point_count; i++) {
        if (spw_cli_advise_answer_ratio(settings->goal.step_ns, points[i].cost_ns) <=
            settings->slowdown) {
            peak = points[i].peak;
        }
    }
    return peak;
}

bool spw_cli_advise_take_curve(struct spw_cli_advise_settings *settings,
                               const struct spw_cli_advise_history *history)
{
    struct spw_cli_advise_goal *goal = &settings->goal;
    size_t count = history->module_count > 0 && goal->step_ns > 0
                       ? spw_cli_advise_plan_curve(history, goal, &settings->points)
                       : 0;
    bool good = count > 1 || has_budget(settings);

    settings->point_count = count;
    if (count > 1) {
        spw_cli_advise_answer_curve(goal, settings->points, count);
    }
    if (!good) {
        spw_cli_complain("advise",
                         "--slowdown gives a budget only if repeated blocks of a PyTorch "
                         "model can be recomputed%s (expected --budget SIZE too)",
                         goal->step_ns == 0 ? ", and the time of a step is known" : "");
    } else if (!has_budget(settings)) {
        goal->budget_bytes = spw_cli_advise_budget_for(lowest_peak(settings)) + goal->kept_bytes;
        printf("the least memory at %.2f times the step, by recomputing: a budget of %s\n",
               settings->slowdown, spw_cli_size(goal->budget_bytes));
    }
    return good;
}

bool spw_cli_advise_make_plan(struct spw_cli_advise_settings *settings,
                              const struct spw_cli_advise_history *history,
                              struct spw_cli_advise_plan *ret_plan)
{
    if (settings->budget_permille > 0) {
        settings->goal.budget_bytes =
            history->peak / 1000 * settings->budget_permille + settings->goal.kept_bytes;
    }
    if (spw_cli_advise_plan_make(history, &settings->goal, ret_plan)) {
        return true;
    }
    spw_cli_complain("advise", "not enough memory");
    spw_cli_advise_plan_fini(ret_plan);
    return false;
}

/* Opens a recording, and takes the time of a step and the memory of the driver. */
static bool open_at(struct spw_cli_advise_settings *settings, const char *path, unsigned depth,
                    struct spw_cli_advise_history *history)
{
    struct spw_cli_advise_goal *goal = &settings->goal;

    if (!spw_cli_advise_history_open(history, "advise", path, depth)) {
        return false;
    }
    if (settings->ample != NULL) {
        goal->kept_bytes = settings->ample->own_bytes;
        goal->step_ns = spw_cli_advise_run_step_ns(settings->ample, history->steps);
    } else {
        goal->step_ns = settings->step_ms > 0 ? (uint64_t)(settings->step_ms * 1e6)
                        : history->simulated  ? 0
                                              : history->step_ns;
    }
    return true;
}

/* Returns the cost of a step if modules of this history are recomputed. Returns UINT64_MAX if the
 * program does not fit in this way. */
static uint64_t cost_of(struct spw_cli_advise_settings *settings,
                        const struct spw_cli_advise_history *history)
{
    static struct spw_cli_advise_plan plan; /* too large for a stack */
    uint64_t cost = UINT64_MAX;

    settings->goal.recompute = true;
    if (spw_cli_advise_make_plan(settings, history, &plan)) {
        cost = plan.answer != SPW_CLI_ADVISE_IMPOSSIBLE ? plan.cost_ns : UINT64_MAX;
        spw_cli_advise_plan_fini(&plan);
    }
    return cost;
}

bool spw_cli_advise_open_best(struct spw_cli_advise_settings *settings, const char *path,
                              struct spw_cli_advise_history *history)
{
    bool budgeted = has_budget(settings);
    uint64_t least = UINT64_MAX;
    unsigned best = 0, depth = 0, deepest;

    do {
        uint64_t cost;

        if (!open_at(settings, path, depth, history)) {
            return false;
        }
        deepest = history->depth;
        if (deepest == 0 || settings->goal.step_ns == 0) {
            return true;
        }
        cost = budgeted ? cost_of(settings, history) : UINT64_MAX;
        spw_cli_advise_history_close(history);
        if (cost < least) {
            least = cost;
            best = depth;
        }
    } while (depth++ < deepest);
    return open_at(settings, path, budgeted ? best : deepest / 2, history);
}
