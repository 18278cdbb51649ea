#include "cli/keep/choice.h"

#include "cli/advise/cost.h"
#include "cli/advise/plan.h"
#include "cli/advise/reader.h"
#include "cli/advise/settings.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SLOW = 3 }; /* a step may take so many times as long, if nobody asks for more */

/* The facts that a plan needs. */
struct survey {
    struct spw_cli_advise_settings settings;
    uint64_t measured_ns, ample_ns; /* a step of this run; one with ample memory. 0: not known */
    size_t module_count;
    double steps;
};

static void say(struct spw_cli_keep_choice *choice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct spw_cli_keep_choice *choice, const char *format, ...)
{
    size_t used = strlen(choice->text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(choice->text + used, sizeof(choice->text) - used, format, arguments);
    va_end(arguments);
}

static void take_times(struct survey *survey, const struct spw_cli_keep_facts *facts,
                       const struct spw_cli_advise_history *history)
{
    uint64_t live = spw_cli_advise_live_bytes(facts->budget_bytes);
    uint64_t excess = history->peak > live ? history->peak - live : 0;
    struct spw_cli_keep_times times = {
        .held = facts->held_ns,
        .kernels = history->kernel_ns,
        .spilling = spw_cli_advise_default_ns(excess, survey->settings.goal.link),
    };

    if (facts->simulated != NULL) {
        /* Its clock is the cost model itself. So nothing but the kernels takes time, and moves. */
        times.measured = spw_cli_advise_run_step_ns(facts->simulated, history->steps);
        times.held = times.measured;
    } else if (!history->simulated) {
        times.measured = history->step_ns;
    }
    survey->measured_ns = times.measured;
    survey->ample_ns = spw_cli_keep_ample_ns(&times);
}

/* Reads these facts from the recording. Returns false if it cannot be read. */
static bool take_survey(const struct spw_cli_keep_facts *facts, struct survey *ret_survey)
{
    static struct spw_cli_advise_history history; /* too large for a stack */

    *ret_survey = (struct survey){
        .settings.goal = {.budget_bytes = facts->budget_bytes,
                          .kept_bytes = facts->own_bytes + facts->lacked_bytes,
                          .host_bytes = facts->host_bytes,
                          .link = SPW_CLI_ADVISE_LINK},
    };
    if (!spw_cli_advise_history_open(&history, "run --fit", facts->recording, /* depth */ 0)) {
        return false;
    }
    take_times(ret_survey, facts, &history);
    ret_survey->settings.step_ms = (double)ret_survey->ample_ns / 1e6;
    ret_survey->module_count = history.module_count;
    ret_survey->steps = history.steps;
    spw_cli_advise_history_close(&history);
    return true;
}

/* ---- without a whole step ---- */

/* A policy that recomputes all repeated blocks, for a program whose backward pass was not seen. */
static cJSON *recompute_all(void)
{
    cJSON *policy = cJSON_CreateObject(), *rule = cJSON_CreateObject();
    cJSON *rules = cJSON_AddArrayToObject(policy, "rules");

    (void)cJSON_AddStringToObject(rule, "name", "blocks");
    (void)cJSON_AddBoolToObject(cJSON_AddObjectToObject(rule, "action"), "recompute", true);
    if (!cJSON_AddItemToArray(rules, rule)) {
        cJSON_Delete(rule);
        cJSON_Delete(policy);
        policy = NULL;
    }
    return policy;
}

static void choose_blindly(const struct survey *survey, struct spw_cli_keep_choice *ret_choice)
{
    if (survey->module_count == 0) {
        say(ret_choice,
            "no whole step was seen, and no repeated blocks of a PyTorch model: nothing "
            "can be chosen");
        return;
    }
    ret_choice->policy = recompute_all();
    say(ret_choice, "all repeated blocks run again in backward; no whole step was seen, so the "
                    "peak is not predicted");
}

/* ---- with steps ---- */

static uint64_t placed_bytes(const struct spw_cli_advise_plan *plan)
{
    return plan->host_bytes > plan->spilled_bytes ? plan->host_bytes - plan->spilled_bytes : 0;
}

static void describe(const struct survey *survey, const struct spw_cli_advise_history *history,
                     const struct spw_cli_advise_plan *plan, struct spw_cli_keep_choice *ret_choice)
{
    const struct spw_cli_advise_goal *goal = &survey->settings.goal;
    double ample_ms = (double)survey->ample_ns / 1e6;

    if (plan->again_count > 0) {
        say(ret_choice, "%zu of %zu repeated blocks run again in backward", plan->again_count,
            history->module_count);
    }
    if (placed_bytes(plan) > 0) {
        say(ret_choice, "%s%s placed on the host", plan->again_count > 0 ? ", " : "",
            spw_cli_size(placed_bytes(plan)));
    }
    say(ret_choice, "; predicted: a peak of %s in %s", spw_cli_size(plan->device_bytes),
        spw_cli_size(goal->budget_bytes));
    if (plan->spilled_bytes > 0) {
        say(ret_choice, ", %s of it spill", spw_cli_size(plan->spilled_bytes));
    }
    if (ample_ms > 0) {
        say(ret_choice, ", %.3g ms a step", ample_ms + (double)plan->cost_ns / 1e6);
    }
    if (survey->measured_ns > 0) {
        say(ret_choice, " (%.3g ms by spilling alone)", (double)survey->measured_ns / 1e6);
    }
}

/* Returns the measured cost of spilling alone. If it is not known, returns the modelled cost. */
static uint64_t spilling_ns(const struct survey *survey, const struct spw_cli_advise_plan *plan)
{
    return survey->measured_ns > survey->ample_ns ? survey->measured_ns - survey->ample_ns
                                                  : plan->default_ns;
}

/* Takes a plan as the choice, or says why not. */
static void judge(const struct survey *survey, const struct spw_cli_advise_history *history,
                  struct spw_cli_advise_plan *plan, struct spw_cli_keep_choice *ret_choice)
{
    double ratio = spw_cli_advise_answer_ratio(survey->ample_ns, plan->cost_ns);

    if (plan->answer == SPW_CLI_ADVISE_FITS) {
        say(ret_choice, "its live memory fits (%s in %s): nothing is chosen",
            spw_cli_size(plan->device_bytes), spw_cli_size(survey->settings.goal.budget_bytes));
    } else if (plan->answer == SPW_CLI_ADVISE_IMPOSSIBLE) {
        say(ret_choice, "no rules make it fit: it goes on as it is");
    } else if (plan->cost_ns >= spilling_ns(survey, plan)) {
        say(ret_choice, "spilling alone costs no more than any rules: nothing is chosen");
    } else if (ratio > SLOW) {
        say(ret_choice,
            "even with the best rules, a step takes %.1f times as long as with ample memory: "
            "nothing is chosen (spillway advise --slowdown %.0f asks for it)",
            ratio, ratio + 1);
    } else {
        describe(survey, history, plan, ret_choice);
        ret_choice->device_bytes = plan->device_bytes;
        ret_choice->spilled_bytes = plan->spilled_bytes;
        ret_choice->policy = plan->policy;
        plan->policy = NULL;
    }
}

static bool is_better(const struct spw_cli_advise_plan *one,
                      const struct spw_cli_advise_plan *other)
{
    return one->answer == SPW_CLI_ADVISE_PLACED &&
           (other->answer == SPW_CLI_ADVISE_IMPOSSIBLE || one->cost_ns < other->cost_ns);
}

/* Makes a plan that recomputes, and one that only places memory, and judges the better one. */
static void choose(struct survey *survey, const struct spw_cli_keep_facts *facts,
                   struct spw_cli_keep_choice *ret_choice)
{
    static struct spw_cli_advise_history history; /* large objects have no room on a stack */
    static struct spw_cli_advise_plan plans[2];
    struct spw_cli_advise_settings *settings = &survey->settings;
    bool good = spw_cli_advise_open_best(settings, facts->recording, &history);

    memset(plans, 0, sizeof(plans));
    for (int i = 0; good && i < 2; i++) {
        settings->goal.recompute = i == 0 && settings->goal.step_ns > 0;
        good = spw_cli_advise_make_plan(settings, &history, &plans[i]);
    }
    if (good) {
        judge(survey, &history, is_better(&plans[1], &plans[0]) ? &plans[1] : &plans[0],
              ret_choice);
    } else {
        say(ret_choice, "the recording cannot be read: nothing is chosen");
    }
    spw_cli_advise_plan_fini(&plans[0]);
    spw_cli_advise_plan_fini(&plans[1]);
    spw_cli_advise_history_close(&history);
}

void spw_cli_keep_choose(const struct spw_cli_keep_facts *facts,
                         struct spw_cli_keep_choice *ret_choice)
{
    struct survey survey;

    memset(ret_choice, 0, sizeof(*ret_choice));
    if (!take_survey(facts, &survey)) {
        say(ret_choice, "the recording cannot be read: nothing is chosen");
    } else if (survey.steps <= 0 || facts->ended_early) {
        choose_blindly(&survey, ret_choice);
    } else {
        choose(&survey, facts, ret_choice);
    }
}
