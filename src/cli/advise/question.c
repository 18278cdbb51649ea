#include "cli/advise/question.h"

#include "cli/advise/answer_json.h"
#include "cli/advise/reader.h"
#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/launch/child.h"
#include "cli/launch/job.h"
#include "cli/launch/policy_file.h"
#include "system/create.h"

#include <stdio.h>
#include <stdlib.h>

/* Two plans: one that only places memory on the host, and one that recomputes modules first. */
enum { RECOMPUTING, PLACING, WAYS };

static const struct {
    const char *name, *what;
} ways[WAYS] = {[RECOMPUTING] = {"recompute", "recompute modules"},
                [PLACING] = {"placement", "place memory on the host"}};

struct way {
    struct spw_cli_advise_plan plan;
    bool is_offered, is_replayed;
    struct spw_cli_advise_run run;
    uint64_t device_bytes; /* highest live bytes on the device, replayed */
};

/* A command, and the results of its runs. */
struct question {
    struct spw_cli_advise_settings *settings;
    struct spw_cli_advise_replays replays;
    struct way ways[WAYS];
    uint64_t peak_bytes; /* highest live bytes on the device, with ample memory */
    double steps;        /* in the second half of a run; 0: not known */
    bool written;        /* a policy has been written */
    struct spw_cli_advise_run ample, without;
    char names[SPW_CLI_POLICIES][SPW_CLI_POLICY_NAME]; /* of the installed policies */
    struct spw_cli_advise_run shipped[SPW_CLI_POLICIES];
    size_t shipped_count;
};

static enum spw_cli_advise_answer answer_of(const struct question *question)
{
    const struct way *recomputing = &question->ways[RECOMPUTING];

    return recomputing->is_offered ? recomputing->plan.answer : question->ways[PLACING].plan.answer;
}

static bool make_plans(struct question *question, const struct spw_cli_advise_history *history)
{
    struct spw_cli_advise_settings *settings = question->settings;

    for (int i = 0; i < WAYS; i++) {
        struct way *way = &question->ways[i];

        settings->goal.recompute = i == RECOMPUTING;
        if (!spw_cli_advise_make_plan(settings, history, &way->plan)) {
            return false;
        }
        way->is_offered = way->plan.answer == SPW_CLI_ADVISE_PLACED &&
                          (i == PLACING || way->plan.again_count > 0);
    }
    return true;
}

static void print_plans(const struct question *question,
                        const struct spw_cli_advise_history *history)
{
    const struct spw_cli_advise_goal *goal = &question->settings->goal;

    spw_cli_advise_answer_head(history, goal, question->ways[PLACING].plan.live_bytes);
    for (int i = 0; i < WAYS; i++) {
        /* If there is no offer, the text is the reason why no rules make the program fit. */
        if (question->ways[i].is_offered ||
            (i == PLACING && !question->ways[RECOMPUTING].is_offered)) {
            spw_cli_advise_answer_print(history, goal, &question->ways[i].plan);
        }
    }
    if (answer_of(question) != SPW_CLI_ADVISE_FITS) {
        spw_cli_advise_changes_print(history);
    }
}

static bool learn(struct question *question)
{
    static struct spw_cli_advise_history history; /* too large for a stack */
    bool good;

    if (!spw_cli_advise_open_best(question->settings, question->replays.ample, &history)) {
        return false;
    }
    question->steps = history.steps;
    question->peak_bytes = history.peak;
    good =
        spw_cli_advise_take_curve(question->settings, &history) && make_plans(question, &history);
    if (good) {
        print_plans(question, &history);
    }
    spw_cli_advise_history_close(&history);
    return good;
}

/* The device's peak in the latest recording. */
static uint64_t replayed_peak(const struct question *question)
{
    static struct spw_cli_advise_history history; /* too large for a stack */
    uint64_t peak;

    if (!spw_cli_advise_history_open(&history, "advise", question->replays.record,
                                     /* depth */ 0)) {
        return 0;
    }
    peak = history.peak;
    spw_cli_advise_history_close(&history);
    return peak;
}

static double ratio_of(const struct question *question, const struct spw_cli_advise_run *run)
{
    uint64_t step_ns = question->settings->goal.step_ns;

    return step_ns > 0 && spw_cli_advise_run_is_good(run)
               ? (double)spw_cli_advise_run_step_ns(run, question->steps) / (double)step_ns
               : 0;
}

static void print_row(const char *who, uint64_t device_bytes, uint64_t host_bytes,
                      uint64_t moved_bytes, double ratio)
{
    spw_cli_print(stdout, "  %-26s  %12s  %12s  %12s  %6.2f times\n", who,
                  device_bytes > 0 ? spw_cli_size(device_bytes) : "", spw_cli_size(host_bytes),
                  spw_cli_size(moved_bytes), ratio);
}

static void print_run(const struct question *question, const char *who,
                      const struct spw_cli_advise_run *run, uint64_t device_bytes)
{
    if (spw_cli_advise_run_is_good(run)) {
        print_row(who, device_bytes, run->host_bytes, run->spilled_bytes + run->promoted_bytes,
                  ratio_of(question, run));
    } else {
        spw_cli_print(stdout, "  %-26s  %s\n", who,
                      run->outcome == SPW_CLI_SIM_FAILED ? "the command failed" : "does not fit");
    }
}

static void print_table(const struct question *question)
{
    char who[64];

    printf("  %-26s  %12s  %12s  %12s  %12s\n", "", "device, live", "host", "moved in all",
           "a step takes");
    for (int i = 0; i < WAYS; i++) {
        const struct way *way = &question->ways[i];

        if (way->is_offered) {
            (void)snprintf(who, sizeof(who), "%s, predicted", ways[i].name);
            print_row(
                who, way->plan.device_bytes, way->plan.host_bytes, 0,
                spw_cli_advise_answer_ratio(question->settings->goal.step_ns, way->plan.cost_ns));
        }
        if (way->is_replayed) {
            (void)snprintf(who, sizeof(who), "%s, replayed", ways[i].name);
            print_run(question, who, &way->run, way->device_bytes);
        }
    }
    print_run(question, "spilling without rules", &question->without, 0);
    for (size_t i = 0; i < question->shipped_count; i++) {
        print_run(question, question->names[i], &question->shipped[i], 0);
    }
    printf("  %-26s  does not fit\n", "--spill off");
}

/* Returns the fastest installed policy that fits, and its *ret_ratio. Returns NULL if none fits. */
static const char *best_shipped(const struct question *question, double *ret_ratio)
{
    const char *best = NULL;

    for (size_t i = 0; i < question->shipped_count; i++) {
        double ratio = ratio_of(question, &question->shipped[i]);

        if (ratio > 0 && (best == NULL || ratio < *ret_ratio)) {
            best = question->names[i];
            *ret_ratio = ratio;
        }
    }
    return best;
}

/* Returns the fastest way that was replayed and fits, and its *ret_ratio. Returns NULL if none
 * fits. */
static struct way *best_way(struct question *question, double *ret_ratio)
{
    struct way *best = NULL;

    for (int i = 0; i < WAYS; i++) {
        struct way *way = &question->ways[i];
        double ratio = way->is_replayed ? ratio_of(question, &way->run) : 0;

        if (ratio > 0 && (best == NULL || ratio < *ret_ratio)) {
            best = way;
            *ret_ratio = ratio;
        }
    }
    return best;
}

/* Says whether a step is too slow. Returns the exit code. */
static int judge_ratio(const struct question *question, double ratio)
{
    (void)spw_cli_advise_warn_if_slow(ratio);
    return spw_cli_advise_is_too_slow(question->settings, ratio) ? SPW_CLI_EXIT_FINDINGS
                                                                 : SPW_CLI_EXIT_OK;
}

/* Judges the case that no way of this command fits. */
static int judge_spilling(const struct question *question)
{
    if (question->ways[RECOMPUTING].is_replayed || question->ways[PLACING].is_replayed) {
        puts("the policy does not make it fit: nothing is written");
    }
    if (!spw_cli_advise_run_is_good(&question->without)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    return judge_ratio(question, ratio_of(question, &question->without));
}

static int judge_command(struct question *question)
{
    double with = 0, shipped = 0, without = ratio_of(question, &question->without);
    struct way *way = best_way(question, &with);
    const char *name = best_shipped(question, &shipped);
    int code;

    if (name != NULL && (with == 0 || shipped < with) && (without == 0 || shipped < without)) {
        spw_cli_print(stdout,
                      "the policy %s is faster: nothing is written (spillway run --policy %s -- "
                      "...)\n",
                      name, name);
        return judge_ratio(question, shipped);
    }
    if (way == NULL) {
        return judge_spilling(question);
    }
    if (without > 0 && without <= with) {
        puts("spilling without rules is at least as good: nothing is written");
        return judge_ratio(question, without);
    }
    if (!spw_cli_advise_may_write(question->settings, with)) {
        return without > 0 && question->settings->slowdown == 0 ? SPW_CLI_EXIT_OK
                                                                : SPW_CLI_EXIT_FINDINGS;
    }
    code = spw_cli_advise_write_policy(question->settings, &way->plan);
    question->written = code == SPW_CLI_EXIT_OK;
    return code;
}

static bool run_within(struct question *question, const char *policy, const char *what_rules,
                       struct spw_cli_advise_run *ret_run)
{
    const struct spw_cli_advise_goal *goal = &question->settings->goal;

    return spw_cli_advise_replays_run(&question->replays, goal->budget_bytes, goal->host_bytes,
                                      policy, what_rules, ret_run);
}

/* Runs the command with the installed policies. Returns false if a run was interrupted. */
static bool replay_shipped(struct question *question)
{
    size_t count = spw_cli_policy_installed(/* moving */ true, question->names);

    while (question->shipped_count < count) {
        size_t i = question->shipped_count;

        if (!run_within(question, question->names[i], "", &question->shipped[i])) {
            return false;
        }
        question->shipped_count++;
    }
    return true;
}

/* Runs the command within the budget, with the policy of a plan. Returns false if the run was
 * interrupted. */
static bool replay_way(struct question *question, int number)
{
    struct way *way = &question->ways[number];
    cJSON *copy = cJSON_Duplicate(way->plan.policy, true);

    if (copy == NULL || !spw_cli_json_write(copy, question->replays.policy) ||
        !run_within(question, question->replays.policy, ways[number].what, &way->run)) {
        return false;
    }
    way->is_replayed = true;
    way->device_bytes = replayed_peak(question);
    return true;
}

/* Returns true if a way is worth a run. The way that only places memory is not run if
 * recomputing is predicted to be much faster: the predictions are good enough for this decision. */
static bool is_worth_a_run(const struct question *question, int number)
{
    const struct way *recomputing = &question->ways[RECOMPUTING];
    const struct way *way = &question->ways[number];

    return way->is_offered && (number == RECOMPUTING || !recomputing->is_offered ||
                               way->plan.cost_ns / 5 * 4 < recomputing->plan.cost_ns);
}

/* Runs the command within the budget. Returns false if a run was interrupted. */
static bool replay(struct question *question)
{
    question->replays.total--; /* one with a policy was expected */
    for (int i = 0; i < WAYS; i++) {
        question->replays.total += is_worth_a_run(question, i);
    }
    if (!run_within(question, NULL, "", &question->without)) {
        return false;
    }
    if (question->settings->shipped && !replay_shipped(question)) {
        return false;
    }
    for (int i = 0; i < WAYS; i++) {
        if (is_worth_a_run(question, i) && !replay_way(question, i)) {
            return false;
        }
    }
    return true;
}

static int answer(struct question *question)
{
    const char *said = question->replays.trials.last_line;

    if (!spw_cli_advise_replays_record(&question->replays, &question->ample)) {
        return question->ample.code != 0 ? question->ample.code : SPW_CLI_EXIT_CANNOT_START;
    }
    if (question->ample.code != 0 || !spw_cli_advise_run_is_good(&question->ample)) {
        if (question->ample.code == 0 && question->ample.outcome == SPW_CLI_SIM_UNUSED) {
            said = spw_cli_launch_lack();
            spw_cli_complain("advise", "no device is known to have been used%s%s",
                             *said != '\0' ? ": " : "", said);
            return SPW_CLI_EXIT_FINDINGS;
        }
        spw_cli_complain("advise",
                         "the command failed with ample memory (exit code %d)%s%s; spillway sim "
                         "shows its output",
                         question->ample.code, *said != '\0' ? ": " : "", said);
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (!learn(question)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (answer_of(question) == SPW_CLI_ADVISE_FITS) {
        return SPW_CLI_EXIT_OK;
    }
    (void)fflush(stdout);
    if (!replay(question)) {
        return question->replays.trials.interrupt != 0
                   ? SPW_CLI_EXIT_SIGNAL + question->replays.trials.interrupt
                   : SPW_CLI_EXIT_FINDINGS;
    }
    print_table(question);
    return judge_command(question);
}

/* ---- JSON ---- */

static void add_run(cJSON *json, const char *key, const struct question *question,
                    const struct spw_cli_advise_run *run, uint64_t device_bytes)
{
    spw_cli_advise_json_figures(json, key, device_bytes, run->host_bytes,
                                run->spilled_bytes + run->promoted_bytes, ratio_of(question, run));
}

/* The caller deletes it. */
static cJSON *make_answer(const struct question *question)
{
    cJSON *json =
        spw_cli_advise_json_make(question->settings, answer_of(question), question->peak_bytes);
    cJSON *shipped;

    (void)cJSON_AddBoolToObject(json, "written", question->written);
    for (int i = 0; i < WAYS; i++) {
        const struct way *way = &question->ways[i];
        cJSON *object = way->is_offered ? spw_cli_advise_json_plan(json, ways[i].name,
                                                                   question->settings, &way->plan)
                                        : NULL;

        if (object != NULL && way->is_replayed) {
            add_run(object, "replayed", question, &way->run, way->device_bytes);
        }
    }
    add_run(json, "without_rules", question, &question->without, 0);
    shipped = cJSON_AddObjectToObject(json, "shipped");
    for (size_t i = 0; i < question->shipped_count; i++) {
        add_run(shipped, question->names[i], question, &question->shipped[i], 0);
    }
    return json;
}

/* Writes the files of --report and --json. Returns false after a line on stderr. */
static bool write_answer(const struct question *question)
{
    const struct spw_cli_advise_settings *settings = question->settings;
    cJSON *json = make_answer(question);
    bool good = settings->report == NULL ||
                spw_cli_advise_json_page(settings, question->replays.ample, json);

    if (settings->json == NULL) {
        cJSON_Delete(json);
    } else if (!spw_cli_json_write(json, settings->json)) {
        spw_cli_complain("advise", "%s: %s", settings->json, spw_create_problem(settings->json));
        good = false;
    }
    return good;
}

int spw_cli_advise_on_command(struct spw_cli_advise_settings *settings, char **arguments)
{
    static struct question question; /* too large for a stack */
    int code;

    question.settings = settings;
    settings->ample = &question.ample;
    spw_cli_launch_end_within(SPW_CLI_LAUNCH_GRACE);
    spw_cli_job_set_devices(arguments);
    if (!spw_cli_advise_replays_begin(&question.replays, "advise", arguments,
                                      (uint64_t)settings->goal.link)) {
        return SPW_CLI_EXIT_CANNOT_START;
    }
    question.replays.total =
        3 + (settings->shipped
                 ? (unsigned)spw_cli_policy_installed(/* moving */ true, question.names)
                 : 0);
    code = answer(&question);
    if (question.peak_bytes > 0 && !write_answer(&question)) {
        code = SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_advise_replays_end(&question.replays);
    for (int i = 0; i < WAYS; i++) {
        spw_cli_advise_plan_fini(&question.ways[i].plan);
    }
    return code;
}
