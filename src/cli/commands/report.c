#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/report/categories.h"
#include "cli/report/report.h"
#include "system/create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOP = 10, EVENTS = 100000 };

/* The forms; the first is the default. */
static const struct form {
    const char *name;
    void (*write)(struct spw_cli_report *report); /* NULL: a page, which has several recordings */
    bool has_categories;                          /* shows categories of memory */
    bool shows_problem;                           /* shows that the file is damaged */
} forms[] = {
    {"summary", spw_cli_report_summary, true, true},
    {"json", spw_cli_report_json, true, true},
    {"table", spw_cli_report_site_table, false, false},
    {"tree", spw_cli_report_tree, false, false},
    {"folded", spw_cli_report_folded, false, false},
    {"html", NULL, true, false},
    {"speedscope", spw_cli_report_speedscope, false, false},
    {"perfetto", spw_cli_report_perfetto, false, false},
    {"rmm-csv", spw_cli_report_rmm, false, false},
    {"memory-viz", spw_cli_report_viz, false, false},
    {"memory-viz-json", spw_cli_report_viz_json, false, false},
};

enum { FORMS = sizeof(forms) / sizeof(*forms), OPTIONS = FORMS + 8 };

struct settings {
    const char *path, *output;
    const char **paths; /* all recordings; `path` is the first */
    size_t path_count;
    const struct form *form;
    bool has_form;
    size_t top, events;
    bool without_streams, native, wrappers;
};

static const char help[] =
    "usage: spillway report FILE [FORM] [--output FILE]\n"
    "       spillway report FILE... --html [--output FILE]\n\n"
    "Shows a recording, which spillway run --record FILE writes (and spillway sim): what held\n"
    "device memory at the peak, and what was moved, stolen or refused.\n\n"
    "Forms:\n"
    "  --summary          for people [the default]\n"
    "  --json             sums of each device and call site, with all frames\n"
    "  --table            all call sites: bytes at the peak, at the end and in all\n"
    "  --tree             stacks with their bytes at the peak, the outermost frame first\n"
    "  --folded           stacks with their bytes at the peak, for flamegraph.pl and the like\n"
    "  --html             one page: memory over time, blocks, steps; several FILEs: the ranks "
    "of\n"
    "                     a job, or runs to compare\n"
    "  --speedscope       stacks at the peak, at the end and in all, for speedscope.app\n"
    "  --perfetto         memory over time, moves and driver calls, for ui.perfetto.dev\n"
    "  --memory-viz       every event, for pytorch.org/memory_viz, as a pickle\n"
    "  --memory-viz-json  the same as JSON, which is several times larger\n"
    "  --rmm-csv          every event, as RAPIDS' RMM logs them\n\n"
    "  --output FILE      write to a new FILE instead of stdout\n"
    "  --top N            show N call sites in the summary [10]\n"
    "  --max-events N     memory_viz: the last N events of each device [100000]\n"
    "  --native           stacks with all native frames, not only Python's and operators\n"
    "  --wrappers         stacks with functions that only call another one (_call_impl)\n"
    "  --no-streams       RMM: every stream is 0, as its replay bench demands\n\n"
    "The exit code is 1 when the recording cannot be read.\n";

static bool take_path(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    if (settings->paths == NULL) {
        settings->paths = calloc((size_t)from->argc, sizeof(*settings->paths));
    }
    if (settings->paths == NULL) {
        return false;
    }
    settings->path = settings->path != NULL ? settings->path : from->value;
    settings->paths[settings->path_count++] = from->value;
    return true;
}

static bool take_form(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    const struct form *form = &forms[from->option->key];

    if (settings->has_form && settings->form != form) {
        spw_cli_complain(from->command, "--%s and --%s: only one form is possible",
                         settings->form->name, form->name);
        return false;
    }
    settings->has_form = true;
    settings->form = form;
    return true;
}

static int open_output(const char *command, const struct settings *settings)
{
    int fd = STDOUT_FILENO;

    if (settings->output != NULL) {
        fd = spw_create_open(settings->output, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd < 0) {
            spw_cli_complain(command, "--output=%s: %s", settings->output, strerror(errno));
        }
    } else if (settings->form->write == spw_cli_report_viz && isatty(fd) != 0) {
        spw_cli_complain(command, "--memory-viz writes a pickle, which is not text (expected "
                                  "--output FILE)");
        return -1;
    }
    return fd;
}

static enum spw_cli_shown shown_of(const struct settings *settings)
{
    return settings->native     ? SPW_CLI_SHOWN_NATIVE
           : settings->wrappers ? SPW_CLI_SHOWN_WRAPPERS
                                : SPW_CLI_SHOWN_KNOWN;
}

static int show_page(const char *command, const struct settings *settings)
{
    const struct spw_cli_pages pages = {.paths = settings->paths,
                                        .count = settings->path_count,
                                        .shown = shown_of(settings),
                                        .exit_code = SPW_CLI_EXIT_UNKNOWN};
    int fd = open_output(command, settings);
    int code = SPW_CLI_EXIT_OK;

    if (fd < 0) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (!spw_cli_report_pages(command, &pages, fd)) {
        code = SPW_CLI_EXIT_FINDINGS;
        if (settings->output != NULL) {
            (void)unlink(settings->output);
        }
    }
    return code;
}

static int show(const char *command, const struct settings *settings)
{
    static struct spw_cli_report report;
    int code = SPW_CLI_EXIT_OK;

    report.top = settings->top;
    report.most_events = settings->events;
    report.without_streams = settings->without_streams;
    report.shown = shown_of(settings);
    if (!spw_cli_report_open(&report, command, settings->path)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    report.out.fd = open_output(command, settings);
    if (report.out.fd < 0) {
        spw_cli_report_close(&report);
        return SPW_CLI_EXIT_USAGE;
    }
    if (!settings->form->shows_problem && report.problem[0] != '\0') {
        spw_cli_complain(command, "%s: nothing was read beyond this: %s", settings->path,
                         report.problem);
    }
    if (settings->form->has_categories && !spw_cli_report_categorise(&report)) {
        spw_cli_complain(command, "%s: not enough memory", settings->path);
        spw_cli_categories_free(report.categories);
        spw_cli_report_close(&report);
        return SPW_CLI_EXIT_FINDINGS;
    }
    settings->form->write(&report);
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
    struct settings settings = {.form = forms, .top = TOP, .events = EVENTS};
    bool any;
    struct spw_cli_option options[OPTIONS] = {
        [FORMS] = {"", .take = take_path},
        {"top", .number = &settings.top},
        {"max-events", .number = &settings.events},
        {"native", .given = &settings.native},
        {"wrappers", .given = &settings.wrappers},
        {"no-streams", .given = &settings.without_streams},
        {"output", .text = &settings.output},
    };
    int code;

    for (int i = 0; i < FORMS; i++) {
        options[i] = (struct spw_cli_option){
            .name = forms[i].name, .given = &any, .take = take_form, .key = i};
    }
    code = spw_cli_arguments_read(argc, argv, options, help, &settings);
    if (code >= 0) {
        return code;
    }
    if (settings.path == NULL) {
        return spw_cli_bad_usage(argv[0], "expected a recording");
    }
    if (settings.form->write == NULL) {
        code = show_page(argv[0], &settings);
    } else if (settings.path_count > 1) {
        spw_cli_complain(argv[0], "--%s shows one recording (expected --html for %zu)",
                         settings.form->name, settings.path_count);
        code = SPW_CLI_EXIT_USAGE;
    } else {
        code = show(argv[0], &settings);
    }
    free(settings.paths);
    return code;
}
