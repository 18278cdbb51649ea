#include "cli/commands/list.h"

#include "cli/advise/answer_json.h"
#include "cli/advise/cost.h"
#include "cli/advise/question.h"
#include "cli/advise/reader.h"
#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/cudnn/choice.h"
#include "cli/report/page_file.h"
#include "common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: spillway advise FILE --budget SIZE [options]\n"
    "       spillway advise --budget SIZE [options] -- COMMAND [ARGUMENT ...]\n\n"
    "Fits a program into a budget of device memory at the least cost. Chooses the modules of\n"
    "a PyTorch model to recompute in backward, and the memory to place on the host, and\n"
    "writes a policy that does it. FILE is a recording (spillway run --record FILE\n"
    "--record-uses on --record-modules on). COMMAND runs three or four times on the simulated\n"
    "GPU: with ample memory, and within the budget without rules and with each policy. No\n"
    "policy is written if spilling without rules is at least as good.\n\n"
    "  --budget SIZE      device memory; a percentage is of the peak; without it, the least\n"
    "                     memory that --slowdown allows\n"
    "  --host SIZE        host memory that may be used [no limit]\n"
    "  --slowdown N       a step may take N times as long: no slower policy is written [3]\n"
    "  --link N           speed of a copy over the link, in GB/s each way [50]\n"
    "  --step-time MS     time of a step on the device, in milliseconds, for FILE\n"
    "                     [the clock of the recording, unless the GPU was simulated]\n"
    "  --output FILE      the policy [advice.json]\n"
    "  --json FILE        the predictions and the figures of the replays, for COMMAND\n"
    "  --report FILE      a page of HTML: the recording, and the curve of memory against time\n"
    "  --shipped          also run COMMAND with each policy that comes with spillway\n\n"
    "The exit code is 0 when COMMAND runs in the budget, with the policy or by spilling, or\n"
    "when FILE fits, with or without rules. Otherwise it is 1, also when the best policy is\n"
    "slower than --slowdown allows. Times come from a cost model, not yet measured on a GPU.\n";

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
    struct spw_cli_advise_settings *settings = from->settings;
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
    struct spw_cli_advise_settings *settings = from->settings;

    return parse_size(from, from->option->name, " (expected 12GiB)", &settings->goal.host_bytes);
}

enum { SLOWDOWN, LINK, STEP_TIME };

static const struct {
    const char *ending; /* may follow the number */
    double least;
} numbers[] = {[SLOWDOWN] = {"", 1}, [LINK] = {"GB/s", 1}, [STEP_TIME] = {"ms", 0.001}};

static bool take_number(const struct spw_cli_arguments *from)
{
    struct spw_cli_advise_settings *settings = from->settings;
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

/* ---- a recording ---- */

static int judge_file(const struct spw_cli_advise_settings *settings,
                      struct spw_cli_advise_plan *plan)
{
    double ratio = spw_cli_advise_answer_ratio(settings->goal.step_ns, plan->cost_ns);

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
                                   "GPU, because its clock is not that of a card");
        return SPW_CLI_EXIT_USAGE;
    }
    return spw_cli_advise_may_write(settings, ratio) ? spw_cli_advise_write_policy(settings, plan)
                                                     : SPW_CLI_EXIT_FINDINGS;
}

static bool write_page(const struct spw_cli_advise_settings *settings,
                       const struct spw_cli_advise_plan *plan, uint64_t peak)
{
    cJSON *json = spw_cli_advise_json_make(settings, plan->answer, peak);
    bool good;

    if (plan->answer == SPW_CLI_ADVISE_PLACED) {
        (void)spw_cli_advise_json_plan(json, plan->again_count > 0 ? "recompute" : "placement",
                                       settings, plan);
    }
    good = spw_cli_advise_json_page(settings, settings->path, json);
    cJSON_Delete(json);
    return good;
}

static int advise_on_file(struct spw_cli_advise_settings *settings)
{
    static struct spw_cli_advise_history history; /* too large for a stack */
    static struct spw_cli_advise_plan plan;
    uint64_t peak;
    int code;

    if (!spw_cli_advise_open_best(settings, settings->path, &history)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (history.report.problem[0] != '\0') {
        spw_cli_complain("advise", "%s: damaged, the rest is left out: %s", settings->path,
                         history.report.problem);
    }
    settings->goal.recompute = settings->goal.step_ns > 0;
    if (!spw_cli_advise_take_curve(settings, &history) ||
        !spw_cli_advise_make_plan(settings, &history, &plan)) {
        spw_cli_advise_history_close(&history);
        return SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_advise_answer_head(&history, &settings->goal, plan.live_bytes);
    spw_cli_advise_answer_print(&history, &settings->goal, &plan);
    if (plan.answer != SPW_CLI_ADVISE_FITS) {
        spw_cli_advise_changes_print(&history);
    }
    peak = history.peak;
    spw_cli_advise_history_close(&history);
    code = judge_file(settings, &plan);
    if (settings->report != NULL && !write_page(settings, &plan, peak)) {
        code = SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_advise_plan_fini(&plan);
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
    struct spw_cli_advise_settings settings = {
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
        {"report", .text = &settings.report},
        {"shipped", .given = &settings.shipped},
        {0},
    };
    static char target[PATH_MAX];
    int end = find_end(argc, argv);
    bool has_command = end + 1 < argc;
    int code = spw_cli_arguments_read(end, argv, options, help, &settings);

    if (code >= 0) {
        return code;
    }
    if (has_command == (settings.path != NULL)) {
        return spw_cli_bad_usage(argv[0], "expected either one FILE, or -- and a COMMAND");
    }
    if (settings.goal.budget_bytes == 0 && settings.budget_permille == 0 &&
        settings.slowdown == 0) {
        return spw_cli_bad_usage(argv[0], "--budget is missing (or --slowdown: the least memory at "
                                          "that cost)");
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
    if (settings.report != NULL) {
        if (!spw_cli_page_file_check(argv[0], settings.report, target)) {
            return SPW_CLI_EXIT_USAGE;
        }
        settings.report = target;
    }
    if (has_command && !spw_cli_cudnn_choose_for_runs(argv[0])) {
        return SPW_CLI_EXIT_USAGE;
    }
    code = has_command ? spw_cli_advise_on_command(&settings, argv + end + 1)
                       : advise_on_file(&settings);
    free(settings.points);
    return code;
}
