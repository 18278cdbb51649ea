#include "cli/commands/list.h"

#include "cli/advise/cost.h"
#include "cli/advise/plan.h"
#include "cli/advise/replay.h"
#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/launch/child.h"
#include "cli/launch/policy_file.h"
#include "common/size.h"
#include "system/create.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *path;
    struct spw_cli_advise_goal goal;
    uint64_t budget_permille; /* the budget as a share of the peak; 0: not given */
    double slowdown, step_ms; /* 0: not given */
    const char *output, *json;
    bool shipped; /* also tries the installed policies */
};

static const char help[] =
    "usage: spillway advise FILE --budget SIZE [options]\n"
    "       spillway advise --budget SIZE [options] -- COMMAND [ARGUMENT ...]\n\n"
    "Says which memory of a program should be on the host, so that the program runs in a\n"
    "budget of device memory, and writes a policy that places it there. FILE is a recording\n"
    "(spillway run --record FILE --record-uses on). COMMAND runs three times on the\n"
    "simulated GPU: with ample memory, and within the budget without rules and with the\n"
    "policy. Nothing is written where spilling without rules is at least as good.\n\n"
    "  --budget SIZE      device memory; a percentage is of the peak\n"
    "  --host SIZE        host memory that may be used [no limit]\n"
    "  --slowdown N       a step may take N times as long: write nothing that is slower\n"
    "  --link N           speed of a copy over the link, in GB/s each way [50]\n"
    "  --step-time MS     what a step takes on the device, in milliseconds, for FILE\n"
    "                     [the clock of the recording, unless the GPU was simulated]\n"
    "  --output FILE      the policy [advice.json]\n"
    "  --json FILE        what was predicted and what was replayed, for COMMAND\n"
    "  --shipped          run COMMAND with each policy that comes with spillway, too\n\n"
    "The exit code is 0 when COMMAND runs in the budget, with the policy or by spilling, or\n"
    "rules make FILE fit; else 1, also when the best is slower than --slowdown allows. Times\n"
    "are those of a cost model, not yet measured on a GPU.\n";

/* ---- arguments ---- */

static bool parse_size(const struct spw_cli_arguments *from, const char *name, const char *expected,
                       uint64_t *ret_bytes)
{
    bool percent;

    if (spw_size_parse(from->value, ret_bytes, &percent) && !percent && *ret_bytes >= 1 << 20) {
        return true;
    }
    spw_cli_complain(from->command, "--%s=%s: not a size of 1 MiB or more%s", name, from->value,
                     expected);
    return false;
}

static bool take_budget(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    uint64_t permille;
    bool percent;

    settings->budget_permille = 0;
    if (spw_size_parse(from->value, &permille, &percent) && percent && permille > 0 &&
        permille <= 1000) {
        settings->budget_permille = permille;
        return true;
    }
    return parse_size(from, from->option->name,
                      ", nor a share of the peak from 0.1% to 100% (expected 12GiB or 75%)",
                      &settings->goal.budget_bytes);
}

static bool take_host(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    return parse_size(from, from->option->name, " (expected 12GiB)", &settings->goal.host_bytes);
}

enum { SLOWDOWN, LINK, STEP_TIME };

static const struct {
    const char *ending; /* may follow the number */
    double least;
} numbers[] = {[SLOWDOWN] = {"", 1}, [LINK] = {"GB/s", 1}, [STEP_TIME] = {"ms", 0.001}};

static bool take_number(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    const char *ending = numbers[from->option->key].ending;
    double least = numbers[from->option->key].least;
    char *end;
    double number = strtod(from->value, &end);

    if (end == from->value || (*end != '\0' && strcmp(end, ending) != 0) ||
        !(number >= least && number < 1e9)) {
        spw_cli_complain(from->command, "--%s=%s: not a number of %g or more (expected 25%s)",
                         from->option->name, from->value, least, ending);
        return false;
    }
    if (from->option->key == LINK) {
        settings->goal.link = (double)(uint64_t)(number + 0.5);
    } else {
        *(from->option->key == SLOWDOWN ? &settings->slowdown : &settings->step_ms) = number;
    }
    return true;
}

/* ---- for recordings and commands ---- */

/* Writes the policy of a plan. Returns the exit code. */
static int write_policy(const struct settings *settings, struct spw_cli_advise_plan *plan)
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

/* Warns if even the best way found is slow. `ratio` is the time of a step as a multiple of its time
 * with ample memory; 0: not known. */
static void warn_if_slow(double ratio)
{
    enum { SLOW = 3 };

    if (ratio > SLOW) {
        printf("a step takes %.1f times as long with it: a way to run at all, not to train. The "
               "changes of the script above, such as a smaller batch, or a card with more memory "
               "(spillway fit) usually cost less\n",
               ratio);
    }
}

static bool is_too_slow(const struct settings *settings, double ratio)
{
    if (settings->slowdown == 0 || ratio <= settings->slowdown) {
        return false;
    }
    printf("that is more than --slowdown=%g allows: nothing is written\n", settings->slowdown);
    return true;
}

static bool make_plan(struct settings *settings, const struct spw_cli_advise_history *history,
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

/* ---- a recording ---- */

static int judge_file(const struct settings *settings, struct spw_cli_advise_plan *plan,
                      uint64_t step_ns)
{
    double ratio = spw_cli_advise_answer_ratio(step_ns, plan->cost_ns);
    int code;

    if (plan->answer != SPW_CLI_ADVISE_PLACED) {
        return plan->answer == SPW_CLI_ADVISE_FITS ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
    }
    printf("without rules, spilling costs a step about %.2f ms (an estimate from the benchmark "
           "spill; advise -- COMMAND runs it); with --spill off it does not fit\n",
           (double)plan->default_ns / 1e6);
    if (plan->cost_ns >= plan->default_ns) {
        puts("spilling without rules is at least as good: nothing is written");
        return SPW_CLI_EXIT_OK;
    }
    if (settings->slowdown > 0 && ratio == 0) {
        spw_cli_complain("advise", "--slowdown needs --step-time for a recording of a simulated "
                                   "GPU, whose clock says nothing of a card");
        return SPW_CLI_EXIT_USAGE;
    }
    if (is_too_slow(settings, ratio)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    code = write_policy(settings, plan);
    warn_if_slow(ratio);
    return code;
}

static int advise_on_file(struct settings *settings)
{
    static struct spw_cli_advise_history history; /* too large for a stack */
    static struct spw_cli_advise_plan plan;
    uint64_t step_ns;
    int code;

    if (!spw_cli_advise_history_open(&history, "advise", settings->path)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (history.report.problem[0] != '\0') {
        spw_cli_complain("advise", "%s: damaged, the rest is left out: %s", settings->path,
                         history.report.problem);
    }
    if (!make_plan(settings, &history, &plan)) {
        spw_cli_advise_history_close(&history);
        return SPW_CLI_EXIT_FINDINGS;
    }
    step_ns = settings->step_ms > 0 ? (uint64_t)(settings->step_ms * 1e6)
              : history.simulated   ? 0
                                    : history.step_ns;
    spw_cli_advise_answer_print(&history, &settings->goal, &plan, step_ns);
    if (plan.answer != SPW_CLI_ADVISE_FITS) {
        spw_cli_advise_changes_print(&history);
    }
    spw_cli_advise_history_close(&history);
    code = judge_file(settings, &plan, step_ns);
    spw_cli_advise_plan_fini(&plan);
    return code;
}

/* ---- a command ---- */

/* A command, and the results of its runs. */
struct question {
    struct settings *settings;
    struct spw_cli_advise_replays replays;
    struct spw_cli_advise_plan plan;
    uint64_t step_ns;      /* a step with ample memory */
    uint64_t peak_bytes;   /* highest live bytes on the device, with ample memory */
    bool written;          /* the policy has been written */
    uint64_t policy_bytes; /* highest live bytes on the device, with the policy */
    struct spw_cli_advise_run ample, without, with;
    char names[SPW_CLI_POLICIES][SPW_CLI_POLICY_NAME]; /* of the installed policies */
    struct spw_cli_advise_run shipped[SPW_CLI_POLICIES];
    size_t shipped_count;
};

static bool learn(struct question *question)
{
    struct settings *settings = question->settings;
    static struct spw_cli_advise_history history; /* too large for a stack */
    bool good;

    if (!spw_cli_advise_history_open(&history, "advise", question->replays.record)) {
        return false;
    }
    settings->goal.kept_bytes = question->ample.own_bytes;
    good = make_plan(settings, &history, &question->plan);
    if (good) {
        question->peak_bytes = history.peak;
        question->step_ns = history.steps > 0
                                ? (uint64_t)((double)question->ample.half_ns / history.steps)
                                : question->ample.half_ns;
        spw_cli_advise_answer_print(&history, &settings->goal, &question->plan, question->step_ns);
        if (question->plan.answer != SPW_CLI_ADVISE_FITS) {
            spw_cli_advise_changes_print(&history);
        }
    }
    spw_cli_advise_history_close(&history);
    return good;
}

/* The device's peak in the latest recording. */
static uint64_t replayed_peak(const struct question *question)
{
    static struct spw_cli_advise_history history; /* too large for a stack */
    uint64_t peak;

    if (!spw_cli_advise_history_open(&history, "advise", question->replays.record)) {
        return 0;
    }
    peak = history.peak;
    spw_cli_advise_history_close(&history);
    return peak;
}

static double ratio_of(const struct question *question, const struct spw_cli_advise_run *run)
{
    return question->ample.half_ns > 0 && spw_cli_advise_run_is_good(run)
               ? (double)run->half_ns / (double)question->ample.half_ns
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
    const struct spw_cli_advise_plan *plan = &question->plan;
    bool placed = plan->answer == SPW_CLI_ADVISE_PLACED;

    printf("  %-26s  %12s  %12s  %12s  %12s\n", "", "device, live", "host", "moved in all",
           "a step takes");
    if (placed) {
        print_row("policy, predicted", plan->device_bytes, plan->host_bytes, 0,
                  spw_cli_advise_answer_ratio(question->step_ns, plan->cost_ns));
        print_run(question, "policy, replayed", &question->with, question->policy_bytes);
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

/* Returns true if an installed policy is faster than both the new one and spilling without
 * rules. */
static bool is_shipped_best(const struct question *question)
{
    double with = ratio_of(question, &question->with), best = 0;
    double without = ratio_of(question, &question->without);
    const char *name = best_shipped(question, &best);

    if (name == NULL || (with > 0 && with <= best) || (without > 0 && without <= best)) {
        return false;
    }
    spw_cli_print(stdout,
                  "the policy %s is faster: nothing is written (spillway run --policy %s -- ...)\n",
                  name, name);
    return true;
}

/* Judges a run that no policy can help. */
static int judge_spilling(const struct question *question)
{
    double ratio = ratio_of(question, &question->without);

    return spw_cli_advise_run_is_good(&question->without) && !is_too_slow(question->settings, ratio)
               ? SPW_CLI_EXIT_OK
               : SPW_CLI_EXIT_FINDINGS;
}

static int judge_command(struct question *question)
{
    double with = ratio_of(question, &question->with);
    double without = ratio_of(question, &question->without);
    double shipped = 0;
    int code;

    if (is_shipped_best(question)) {
        (void)best_shipped(question, &shipped);
        warn_if_slow(shipped);
        return is_too_slow(question->settings, shipped) ? SPW_CLI_EXIT_FINDINGS : SPW_CLI_EXIT_OK;
    }
    if (question->plan.answer == SPW_CLI_ADVISE_IMPOSSIBLE) {
        return judge_spilling(question);
    }
    if (!spw_cli_advise_run_is_good(&question->with)) {
        puts("the policy does not make it fit: nothing is written");
        return judge_spilling(question);
    }
    if (spw_cli_advise_run_is_good(&question->without) && without <= with) {
        puts("spilling without rules is at least as good: nothing is written");
        warn_if_slow(without);
        return is_too_slow(question->settings, without) ? SPW_CLI_EXIT_FINDINGS : SPW_CLI_EXIT_OK;
    }
    if (is_too_slow(question->settings, with)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    code = write_policy(question->settings, &question->plan);
    question->written = code == SPW_CLI_EXIT_OK;
    warn_if_slow(with);
    return code;
}

static bool run_within(struct question *question, const char *policy,
                       struct spw_cli_advise_run *ret_run)
{
    const struct spw_cli_advise_goal *goal = &question->settings->goal;

    return spw_cli_advise_replays_run(&question->replays, goal->budget_bytes, goal->host_bytes,
                                      policy, ret_run);
}

/* Runs the command with the installed policies. Returns false if a run was interrupted. */
static bool replay_shipped(struct question *question)
{
    size_t count = spw_cli_policy_installed(/* moving */ true, question->names);

    while (question->shipped_count < count) {
        size_t i = question->shipped_count;

        if (!run_within(question, question->names[i], &question->shipped[i])) {
            return false;
        }
        question->shipped_count++;
    }
    return true;
}

/* Runs the command within the budget. Returns false if a run was interrupted. */
static bool replay(struct question *question)
{
    bool placed = question->plan.answer == SPW_CLI_ADVISE_PLACED;
    cJSON *copy;

    question->replays.total -= placed ? 0 : 1;
    if (!run_within(question, NULL, &question->without)) {
        return false;
    }
    if (question->settings->shipped && !replay_shipped(question)) {
        return false;
    }
    if (!placed) {
        return true;
    }
    copy = cJSON_Duplicate(question->plan.policy, true);
    if (copy == NULL || !spw_cli_json_write(copy, question->replays.policy) ||
        !run_within(question, question->replays.policy, &question->with)) {
        return false;
    }
    question->policy_bytes = replayed_peak(question);
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
    if (question->plan.answer == SPW_CLI_ADVISE_FITS) {
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

static void add_figures(cJSON *json, const char *key, uint64_t device_bytes, uint64_t host_bytes,
                        uint64_t moved_bytes, double ratio)
{
    cJSON *object = cJSON_AddObjectToObject(json, key);

    spw_cli_json_add(object, "device_bytes", device_bytes);
    spw_cli_json_add(object, "host_bytes", host_bytes);
    spw_cli_json_add(object, "moved_bytes", moved_bytes);
    (void)cJSON_AddNumberToObject(object, "step_ratio", ratio);
}

static void add_run(cJSON *json, const char *key, const struct question *question,
                    const struct spw_cli_advise_run *run, uint64_t device_bytes)
{
    add_figures(json, key, device_bytes, run->host_bytes, run->spilled_bytes + run->promoted_bytes,
                ratio_of(question, run));
}

static bool write_answer(const struct question *question)
{
    static const char *const answers[] = {[SPW_CLI_ADVISE_FITS] = "fits",
                                          [SPW_CLI_ADVISE_PLACED] = "placed",
                                          [SPW_CLI_ADVISE_IMPOSSIBLE] = "impossible"};
    const struct spw_cli_advise_plan *plan = &question->plan;
    cJSON *json = cJSON_CreateObject(), *shipped;

    (void)cJSON_AddStringToObject(json, "answer", answers[plan->answer]);
    (void)cJSON_AddBoolToObject(json, "written", question->written);
    spw_cli_json_add(json, "budget_bytes", question->settings->goal.budget_bytes);
    spw_cli_json_add(json, "peak_bytes", question->peak_bytes);
    spw_cli_json_add(json, "step_ns", question->step_ns);
    add_figures(json, "predicted", plan->device_bytes, plan->host_bytes, 0,
                spw_cli_advise_answer_ratio(question->step_ns, plan->cost_ns));
    if (plan->answer == SPW_CLI_ADVISE_PLACED) {
        (void)cJSON_AddNumberToObject(
            json, "least_step_ratio",
            spw_cli_advise_answer_ratio(question->step_ns, plan->bound_ns));
    }
    add_run(json, "replayed", question, &question->with, question->policy_bytes);
    add_run(json, "without_rules", question, &question->without, 0);
    shipped = cJSON_AddObjectToObject(json, "shipped");
    for (size_t i = 0; i < question->shipped_count; i++) {
        add_run(shipped, question->names[i], question, &question->shipped[i], 0);
    }
    return spw_cli_json_write(json, question->settings->json);
}

static int advise_on_command(struct settings *settings, char **arguments)
{
    static struct question question; /* too large for a stack */
    int code;

    question.settings = settings;
    spw_cli_launch_end_within(SPW_CLI_LAUNCH_GRACE);
    if (!spw_cli_advise_replays_begin(&question.replays, "advise", arguments,
                                      (uint64_t)settings->goal.link)) {
        return SPW_CLI_EXIT_CANNOT_START;
    }
    question.replays.total =
        3 + (settings->shipped
                 ? (unsigned)spw_cli_policy_installed(/* moving */ true, question.names)
                 : 0);
    code = answer(&question);
    if (settings->json != NULL && question.peak_bytes > 0 && !write_answer(&question)) {
        spw_cli_complain("advise", "%s: %s", settings->json, spw_create_problem(settings->json));
        code = SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_advise_replays_end(&question.replays);
    spw_cli_advise_plan_fini(&question.plan);
    return code;
}

/* The place of `--`, or argc. */
static int find_end(int argc, char **argv)
{
    int end = 1;

    while (end < argc && strcmp(argv[end], "--") != 0) {
        end++;
    }
    return end;
}

int spw_cli_command_advise(int argc, char **argv)
{
    struct settings settings = {
        .goal = {.host_bytes = UINT64_MAX, .link = SPW_CLI_ADVISE_LINK},
        .output = "advice.json",
    };
    const struct spw_cli_option options[] = {
        {"", .text = &settings.path},
        {"budget", .take = take_budget},
        {"host", .take = take_host},
        {"slowdown", .take = take_number, .key = SLOWDOWN},
        {"link", .take = take_number, .key = LINK},
        {"step-time", .take = take_number, .key = STEP_TIME},
        {"output", .text = &settings.output},
        {"json", .text = &settings.json},
        {"shipped", .given = &settings.shipped},
        {0},
    };
    int end = find_end(argc, argv);
    bool has_command = end + 1 < argc;
    int code = spw_cli_arguments_read(end, argv, options, help, &settings);

    if (code >= 0) {
        return code;
    }
    if (has_command == (settings.path != NULL)) {
        return spw_cli_bad_usage(argv[0], "expected either one FILE, or -- and a COMMAND");
    }
    if (settings.goal.budget_bytes == 0 && settings.budget_permille == 0) {
        return spw_cli_bad_usage(argv[0], "--budget is missing");
    }
    if (!has_command && settings.json != NULL) {
        return spw_cli_bad_usage(argv[0], "--json is for a COMMAND");
    }
    if (!has_command && settings.shipped) {
        return spw_cli_bad_usage(argv[0], "--shipped is for a COMMAND");
    }
    if (has_command && settings.step_ms > 0) {
        return spw_cli_bad_usage(argv[0], "--step-time is for a recording; a COMMAND is timed");
    }
    return has_command ? advise_on_command(&settings, argv + end + 1) : advise_on_file(&settings);
}
