#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/report/categories.h"
#include "cli/report/report.h"
#include "common/create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOP = 10, EVENTS = 100000 };

enum form {
    SUMMARY = 256,
    JSON,
    TABLE,
    TREE,
    FOLDED,
    HTML,
    SPEEDSCOPE,
    PERFETTO,
    RMM,
    VIZ,
    VIZ_JSON,
    FORMS
};
enum { TOP_OPTION = FORMS, EVENTS_OPTION, STREAMS_OPTION, OUTPUT_OPTION };

struct settings {
    const char *path, *output;
    int form;
    const char *form_name;
    size_t top, events;
    bool without_streams, help;
};

static const struct option options[] = {
    {"summary", no_argument, NULL, SUMMARY},
    {"json", no_argument, NULL, JSON},
    {"table", no_argument, NULL, TABLE},
    {"tree", no_argument, NULL, TREE},
    {"folded", no_argument, NULL, FOLDED},
    {"html", no_argument, NULL, HTML},
    {"speedscope", no_argument, NULL, SPEEDSCOPE},
    {"perfetto", no_argument, NULL, PERFETTO},
    {"rmm-csv", no_argument, NULL, RMM},
    {"memory-viz", no_argument, NULL, VIZ},
    {"memory-viz-json", no_argument, NULL, VIZ_JSON},
    {"top", required_argument, NULL, TOP_OPTION},
    {"max-events", required_argument, NULL, EVENTS_OPTION},
    {"no-streams", no_argument, NULL, STREAMS_OPTION},
    {"output", required_argument, NULL, OUTPUT_OPTION},
    SPW_CLI_HELP_OPTION,
    {0},
};

static void print_help(void)
{
    fputs(
        "usage: spillway report FILE [FORM] [--output FILE]\n\n"
        "Shows a recording, which spillway run --record FILE writes (and spillway sim): what held\n"
        "device memory at the peak, and what was moved, stolen or refused.\n\n"
        "Forms:\n"
        "  --summary          for people [the default]\n"
        "  --json             sums of each device and call site, with all frames\n"
        "  --table            all call sites: bytes at the peak, at the end and in all\n"
        "  --tree             stacks with their bytes at the peak, the outermost frame first\n"
        "  --folded           stacks with their bytes at the peak, for flamegraph.pl and the like\n"
        "  --html             one page: memory over time by category and call site\n"
        "  --speedscope       stacks at the peak, at the end and in all, for speedscope.app\n"
        "  --perfetto         memory over time, moves and driver calls, for ui.perfetto.dev\n"
        "  --memory-viz       every event, for pytorch.org/memory_viz, as a pickle\n"
        "  --memory-viz-json  the same as JSON, which is several times larger\n"
        "  --rmm-csv          every event, as RAPIDS' RMM logs them\n\n"
        "  --output FILE      write to a new FILE instead of stdout\n"
        "  --top N            show N call sites in the summary [10]\n"
        "  --max-events N     memory_viz: the last N events of each device [100000]\n"
        "  --no-streams       RMM: every stream is 0, as its replay bench demands\n\n"
        "The exit code is 1 when the recording cannot be read.\n",
        stdout);
}

static bool take_form(const struct spw_cli_arguments *from, int found, struct settings *settings)
{
    const char *name = options[found - SUMMARY].name;

    if (settings->form_name != NULL && settings->form != found) {
        spw_cli_complain(from->command, "--%s and --%s: only one form is possible",
                         settings->form_name, name);
        return false;
    }
    settings->form = found;
    settings->form_name = name;
    return true;
}

static bool take(const struct spw_cli_arguments *from, int found, void *to)
{
    struct settings *settings = to;

    if (found >= SUMMARY && found < FORMS) {
        return take_form(from, found, settings);
    }
    switch (found) {
    case TOP_OPTION:
        return spw_cli_arguments_take_number(from, "top", &settings->top);
    case EVENTS_OPTION:
        return spw_cli_arguments_take_number(from, "max-events", &settings->events);
    case STREAMS_OPTION:
        settings->without_streams = true;
        return true;
    case OUTPUT_OPTION:
        settings->output = from->value;
        return true;
    case SPW_CLI_ARGUMENT_HELP:
        settings->help = true;
        return true;
    default:
        return spw_cli_arguments_take_one(from, &settings->path);
    }
}

static void write_form(struct spw_cli_report *report, int form)
{
    switch (form) {
    case JSON:
        spw_cli_report_json(report);
        break;
    case TABLE:
        spw_cli_report_site_table(report);
        break;
    case TREE:
        spw_cli_report_tree(report);
        break;
    case FOLDED:
        spw_cli_report_folded(report);
        break;
    case HTML:
        spw_cli_report_page(report);
        break;
    case SPEEDSCOPE:
        spw_cli_report_speedscope(report);
        break;
    case PERFETTO:
        spw_cli_report_perfetto(report);
        break;
    case RMM:
        spw_cli_report_rmm(report);
        break;
    case VIZ:
    case VIZ_JSON:
        spw_cli_report_viz(report, form == VIZ);
        break;
    default:
        spw_cli_report_summary(report);
    }
}

static int open_output(const char *command, const struct settings *settings)
{
    int fd = STDOUT_FILENO;

    if (settings->output != NULL) {
        fd = spw_create_open(settings->output, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd < 0) {
            spw_cli_complain(command, "--output=%s: %s", settings->output, strerror(errno));
        }
    } else if (settings->form == VIZ && isatty(fd) != 0) {
        spw_cli_complain(command, "--memory-viz: a pickle is no text (expected --output FILE)");
        return -1;
    }
    return fd;
}

static int show(const char *command, const struct settings *settings)
{
    static struct spw_cli_report report;
    int code = SPW_CLI_EXIT_OK;

    report.top = settings->top;
    report.most_events = settings->events;
    report.without_streams = settings->without_streams;
    if (!spw_cli_report_open(&report, command, settings->path)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    report.out.fd = open_output(command, settings);
    if (report.out.fd < 0) {
        spw_cli_report_close(&report);
        return SPW_CLI_EXIT_USAGE;
    }
    if (settings->form != SUMMARY && settings->form != JSON && report.problem[0] != '\0') {
        spw_cli_complain(command, "%s: nothing was read beyond this: %s", settings->path,
                         report.problem);
    }
    if ((settings->form == SUMMARY || settings->form == JSON || settings->form == HTML) &&
        !spw_cli_report_categorise(&report)) {
        spw_cli_complain(command, "%s: not enough memory", settings->path);
        spw_cli_categories_free(report.categories);
        spw_cli_report_close(&report);
        return SPW_CLI_EXIT_FINDINGS;
    }
    write_form(&report, settings->form);
    spw_cli_categories_free(report.categories);
    spw_cli_report_close(&report);
    if (report.out.failed) {
        spw_cli_complain(command, "cannot write: %s", strerror(errno));
        code = SPW_CLI_EXIT_FINDINGS;
    }
    return code;
}

int spw_cli_command_report(int argc, char **argv)
{
    struct settings settings = {.form = SUMMARY, .top = TOP, .events = EVENTS};

    if (!spw_cli_arguments_each(argc, argv, options, take, &settings)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (settings.help) {
        print_help();
        return SPW_CLI_EXIT_OK;
    }
    if (settings.path == NULL) {
        spw_cli_complain(argv[0], "expected a recording (see spillway report --help)");
        return SPW_CLI_EXIT_USAGE;
    }
    return show(argv[0], &settings);
}
