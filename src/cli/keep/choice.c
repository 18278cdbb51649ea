#include "cli/keep/choice.h"

#include "cli/advise/cost.h"
#include "cli/advise/plan.h"
#include "cli/advise/reader.h"
#include "cli/advise/settings.h"
#include "cli/console/messages.h"
#include "cli/keep/merge.h"
#include "common/minmax.h"

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

static void choose_blindly(size_t module_count, struct spw_cli_keep_choice *ret_choice)
{
    if (module_count == 0) {
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

/* What one rank needs, or all of them together. */
struct need {
    enum { UNREADABLE, STEPLESS, PLANNED } known; /* ordered by importance */
    enum spw_cli_advise_answer answer;
    uint64_t budget_bytes, device_bytes, placed_bytes, spilled_bytes;
    uint64_t measured_ns, ample_ns, cost_ns;
    uint64_t spilling_ns; /* of a step: the cost of spilling alone */
    size_t module_count, again_count;
    cJSON *policy; /* the caller deletes it */
};

static bool is_better(const struct spw_cli_advise_plan *one,
                      const struct spw_cli_advise_plan *other)
{
    return one->answer == SPW_CLI_ADVISE_PLACED &&
           (other->answer == SPW_CLI_ADVISE_IMPOSSIBLE || one->cost_ns < other->cost_ns);
}

/* Takes the figures and the policy of a plan. The cost of spilling alone is the measured one, or
 * the modelled one if that is not known. */
static void take_plan(const struct survey *survey, struct spw_cli_advise_plan *plan,
                      struct need *ret_need)
{
    *ret_need = (struct need){
        .known = PLANNED,
        .answer = plan->answer,
        .budget_bytes = survey->settings.goal.budget_bytes,
        .device_bytes = plan->device_bytes,
        .placed_bytes =
            plan->host_bytes > plan->spilled_bytes ? plan->host_bytes - plan->spilled_bytes : 0,
        .spilled_bytes = plan->spilled_bytes,
        .measured_ns = survey->measured_ns,
        .ample_ns = survey->ample_ns,
        .cost_ns = plan->cost_ns,
        .spilling_ns = survey->measured_ns > survey->ample_ns
                           ? survey->measured_ns - survey->ample_ns
                           : plan->default_ns,
        .module_count = survey->module_count,
        .again_count = plan->again_count,
        .policy = plan->policy,
    };
    plan->policy = NULL;
}

/* Makes a plan that recomputes, and one that only places memory, and takes the better one. */
static void plan(struct survey *survey, const struct spw_cli_keep_facts *facts,
                 struct need *ret_need)
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
        survey->module_count = history.module_count;
        take_plan(survey, is_better(&plans[1], &plans[0]) ? &plans[1] : &plans[0], ret_need);
    }
    spw_cli_advise_plan_fini(&plans[0]);
    spw_cli_advise_plan_fini(&plans[1]);
    spw_cli_advise_history_close(&history);
}

/* Finds what the process of these facts needs. */
static struct need find_need(const struct spw_cli_keep_facts *facts)
{
    struct need need = {.known = UNREADABLE};
    struct survey survey;

    if (!take_survey(facts, &survey)) {
        return need;
    }
    if (survey.steps <= 0 || facts->ended_early) {
        need.known = STEPLESS;
        need.module_count = survey.module_count;
    } else {
        plan(&survey, facts, &need);
    }
    return need;
}

/* ---- all ranks ---- */

/* True if a rank decides, because it has no plan, or because its step takes longer. */
static bool is_harder(const struct need *one, const struct need *other)
{
    if (one->known != other->known) {
        return one->known < other->known;
    }
    return one->answer != other->answer
               ? one->answer > other->answer
               : one->ample_ns + one->cost_ns > other->ample_ns + other->cost_ns;
}

/* Adds a rank: all wait for the slowest one, whose figures count. */
static void add_rank(struct need *all, const struct need *rank)
{
    size_t module_count = all->module_count;
    uint64_t spilled_bytes = spw_max(all->spilled_bytes, rank->spilled_bytes);
    bool both = all->policy != NULL && rank->policy != NULL;
    cJSON *policy = spw_cli_keep_merge(all->policy, rank->policy);

    if (is_harder(rank, all)) {
        *all = *rank;
    }
    if (all->known == STEPLESS) {
        all->module_count = spw_max(module_count, rank->module_count);
    }
    all->spilled_bytes = spilled_bytes;
    all->policy = policy;
    if (both && policy == NULL) {
        all->answer = SPW_CLI_ADVISE_IMPOSSIBLE;
    }
}

static void describe(const struct need *need, struct spw_cli_keep_choice *ret_choice)
{
    if (need->again_count > 0) {
        say(ret_choice, "%zu of %zu repeated blocks run again in backward", need->again_count,
            need->module_count);
    }
    if (need->placed_bytes > 0) {
        say(ret_choice, "%s%s placed on the host", need->again_count > 0 ? ", " : "",
            spw_cli_size(need->placed_bytes));
    }
    say(ret_choice, "; predicted: a peak of %s in %s", spw_cli_size(need->device_bytes),
        spw_cli_size(need->budget_bytes));
    if (need->spilled_bytes > 0) {
        say(ret_choice, ", %s of it spill", spw_cli_size(need->spilled_bytes));
    }
    if (need->ample_ns > 0) {
        say(ret_choice, ", %.3g ms a step", (double)(need->ample_ns + need->cost_ns) / 1e6);
    }
    if (need->measured_ns > 0) {
        say(ret_choice, " (%.3g ms by spilling alone)", (double)need->measured_ns / 1e6);
    }
}

/* Takes the policy as the choice, or says why not. */
static void judge(struct need *need, size_t ranks, struct spw_cli_keep_choice *ret_choice)
{
    double ratio = spw_cli_advise_answer_ratio(need->ample_ns, need->cost_ns);

    if (need->answer == SPW_CLI_ADVISE_FITS) {
        say(ret_choice, "its live memory fits (%s in %s): nothing is chosen",
            spw_cli_size(need->device_bytes), spw_cli_size(need->budget_bytes));
    } else if (need->answer == SPW_CLI_ADVISE_IMPOSSIBLE) {
        say(ret_choice, "no rules make it fit: it goes on as it is");
    } else if (need->cost_ns >= need->spilling_ns) {
        say(ret_choice, "spilling alone costs no more than any rules: nothing is chosen");
    } else if (ratio > SLOW) {
        say(ret_choice,
            "even with the best rules, a step takes %.1f times as long as with ample memory: "
            "nothing is chosen (spillway advise --slowdown %.0f asks for it)",
            ratio, ratio + 1);
    } else {
        if (ranks > 1) {
            say(ret_choice, "on each of %zu ranks, ", ranks);
        }
        describe(need, ret_choice);
        ret_choice->device_bytes = need->device_bytes;
        ret_choice->spilled_bytes = need->spilled_bytes;
        ret_choice->policy = need->policy;
        need->policy = NULL;
    }
}

void spw_cli_keep_choose(const struct spw_cli_keep_facts *facts, size_t count,
                         struct spw_cli_keep_choice *ret_choice)
{
    struct need need = find_need(&facts[0]);

    memset(ret_choice, 0, sizeof(*ret_choice));
    for (size_t i = 1; i < count; i++) {
        struct need rank = find_need(&facts[i]);

        add_rank(&need, &rank);
    }
    if (need.known == UNREADABLE) {
        say(ret_choice, "the recording cannot be read: nothing is chosen");
    } else if (need.known == STEPLESS) {
        choose_blindly(need.module_count, ret_choice);
    } else {
        judge(&need, count, ret_choice);
    }
    cJSON_Delete(need.policy);
}
