#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/usage/difference.h"
#include "cli/usage/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOP = 20 };

struct settings {
    const char *before, *after;
    size_t top;
    bool json;
};

static const char help[] =
    "usage: spillway diff BEFORE AFTER [--json] [--top N]\n\n"
    "Compares the memory of two runs: the peak, what it was for, and which lines held more\n"
    "or less at it. Both files are recordings or statistics files, which spillway run\n"
    "--record FILE or --stats FILE writes (and spillway sim). A call site is the same if its\n"
    "files, functions and lines are. Call sites of one function that differ only in lines are\n"
    "matched in the order of the program, so that their bytes differ least.\n\n"
    "  --top N  show N call sites that differ [20]\n"
    "  --json   print one JSON object, with all call sites\n\n"
    "The exit code is 0 also when the runs differ, 1 when a file cannot be read, 2 for bad\n"
    "usage; spillway check has limits.\n";

static int compare(const char *command, const struct settings *settings)
{
    struct spw_cli_usage before, after;
    bool printed;

    if (!spw_cli_usage_load(command, settings->before, &before)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (!spw_cli_usage_load(command, settings->after, &after)) {
        spw_cli_usage_free(&before);
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (before.rank >= 0 && after.rank >= 0 && before.rank != after.rank) {
        spw_cli_complain(command,
                         "note: these are ranks %" PRId64 " and %" PRId64 ", whose devices and "
                         "threads have different names: spillway ranks compares those of a job",
                         before.rank, after.rank);
    }
    printed = settings->json ? spw_cli_difference_print_json(&before, &after)
                             : spw_cli_difference_print(&before, &after, settings->top);
    if (!printed) {
        spw_cli_complain(command, "not enough memory");
    }
    spw_cli_usage_free(&before);
    spw_cli_usage_free(&after);
    return printed ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}

int spw_cli_command_diff(int argc, char **argv)
{
    struct settings settings = {.top = TOP};
    const struct spw_cli_option options[] = {
        {"", .text = &settings.before},
        {"", .text = &settings.after},
        {"json", .given = &settings.json},
        {"top", .number = &settings.top},
        {0},
    };
    int code = spw_cli_arguments_read(argc, argv, options, help, NULL);

    if (code >= 0) {
        return code;
    }
    if (settings.after == NULL) {
        return spw_cli_bad_usage(argv[0], "expected two files");
    }
    return compare(argv[0], &settings);
}
