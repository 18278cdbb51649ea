#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/usage/check.h"
#include "cli/usage/usage.h"
#include "common/nearest.h"
#include "common/size.h"
#include "system/create.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *path, *base, *junit;
    bool json;
    struct spw_cli_check check;
};

static const char help[] =
    "usage: spillway check FILE LIMIT... [--json] [--junit FILE]\n\n"
    "Tests the memory of a program against limits, for continuous integration. FILE is a\n"
    "recording or a statistics file, which spillway run --record FILE or --stats FILE\n"
    "writes (and spillway sim). Each limit applies to each device.\n\n"
    "Limits (SIZE is 20GiB, 512MiB, or bytes):\n"
    "  --max-peak SIZE               live memory, at the peak\n"
    "  --max-spill SIZE              memory moved to the host, in the whole run\n"
    "  --max-growth SIZE/step        memory that every step leaves behind (a recording of\n"
    "                                at least 8 steps)\n"
    "  --max-increase SIZE           rise of the peak over that of --base FILE\n"
    "  --max-site PATTERN=SIZE       call sites: PATTERN is a part of what spillway sites\n"
    "                                --full prints; * and ? stand for any characters\n"
    "  --max-category NAME=SIZE      weights, gradients, optimizer_state, activations,\n"
    "                                inputs, workspaces, temporaries or unknown, at its\n"
    "                                largest (a recording in tensor mode)\n"
    "--max-site and --max-category may be given several times.\n\n"
    "  --base FILE   an earlier recording or statistics file\n"
    "  --json        print one JSON object with every limit\n"
    "  --junit FILE  write every limit as a test case in JUnit's form\n\n"
    "Example:\n"
    "  spillway check r.rec --max-peak 20GiB --max-spill 0 --max-growth 1MiB/step\n\n"
    "The exit code is 0 when all limits hold, 1 when a limit does not hold or cannot be\n"
    "checked (one line names it) or FILE cannot be read, 2 for bad usage.\n";

/* ---- limits ---- */

static bool bad(const struct spw_cli_arguments *from, const char *name, const char *expected)
{
    spw_cli_complain(from->command, "--%s=%s: %s", name, from->value, expected);
    return false;
}

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
    bool percent;

    return spw_size_parse(text, ret_bytes, &percent) && !percent;
}

static bool parse_growth(const char *text, uint64_t *ret_bytes)
{
    char size[64];
    const char *slash = strchr(text, '/');
    size_t length = slash != NULL ? (size_t)(slash - text) : strlen(text);

    snprintf(size, sizeof(size), "%.*s", (int)length, text);
    return length < sizeof(size) && (slash == NULL || strcmp(slash, "/step") == 0) &&
           parse_size(size, ret_bytes);
}

static bool parse_category(const struct spw_cli_arguments *from, const char *name, size_t length,
                           enum spw_cli_category *ret_category)
{
    const char *names[SPW_CLI_CATEGORIES], *nearest;
    char expected[128], text[64];

    for (int i = 0; i < SPW_CLI_CATEGORIES; i++) {
        names[i] = spw_cli_category_key((enum spw_cli_category)i);
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) {
            *ret_category = (enum spw_cli_category)i;
            return true;
        }
    }
    snprintf(text, sizeof(text), "%.*s", (int)length, name);
    nearest = spw_nearest(text, 0, names, SPW_CLI_CATEGORIES);
    snprintf(expected, sizeof(expected), "not a category (%s%s%s)",
             nearest != NULL ? "did you mean " : "spillway check --help lists them",
             nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    return bad(from, "max-category", expected);
}

/* Takes WHAT=SIZE, split at the last equals sign. */
static bool parse_named(const struct spw_cli_arguments *from, const char *name,
                        struct spw_cli_limit *limit)
{
    char *equal = strrchr(from->value, '=');

    if (equal == NULL || equal == from->value || !parse_size(equal + 1, &limit->bytes)) {
        return bad(from, name,
                   limit->kind == SPW_CLI_LIMIT_SITE ? "expected PATTERN=SIZE"
                                                     : "expected NAME=SIZE");
    }
    if (limit->kind == SPW_CLI_LIMIT_CATEGORY) {
        return parse_category(from, from->value, (size_t)(equal - from->value), &limit->category);
    }
    limit->pattern = strndup(from->value, (size_t)(equal - from->value));
    return limit->pattern != NULL;
}

static bool take_limit(const struct spw_cli_arguments *from)
{
    struct spw_cli_check *check = &((struct settings *)from->settings)->check;
    struct spw_cli_limit *limit = &check->limits[check->limit_count];

    if (check->limit_count == SPW_CLI_LIMITS) {
        return bad(from, from->option->name, "too many limits");
    }
    *limit = (struct spw_cli_limit){.kind = (enum spw_cli_limit_kind)from->option->key};
    if (limit->kind == SPW_CLI_LIMIT_SITE || limit->kind == SPW_CLI_LIMIT_CATEGORY) {
        if (!parse_named(from, from->option->name, limit)) {
            return false;
        }
    } else if (limit->kind == SPW_CLI_LIMIT_GROWTH ? !parse_growth(from->value, &limit->bytes)
                                                   : !parse_size(from->value, &limit->bytes)) {
        return bad(from, from->option->name, "expected a size, such as 512MiB");
    }
    check->limit_count++;
    return true;
}

/* ---- the command ---- */

static bool has(const struct spw_cli_check *check, enum spw_cli_limit_kind kind)
{
    for (size_t i = 0; i < check->limit_count; i++) {
        if (check->limits[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static bool is_usable(const char *command, const struct settings *settings)
{
    bool increase = has(&settings->check, SPW_CLI_LIMIT_INCREASE);

    if (settings->path == NULL) {
        spw_cli_complain(command, "expected a recording or a statistics file (see spillway check "
                                  "--help)");
    } else if (settings->check.limit_count == 0) {
        spw_cli_complain(command, "expected a limit, such as --max-peak 20GiB");
    } else if (increase != (settings->base != NULL)) {
        spw_cli_complain(command, increase ? "--max-increase: expected --base FILE as well"
                                           : "--base: expected --max-increase SIZE as well");
    } else {
        return true;
    }
    return false;
}

/* Returns true if files of this kind have the figures for all limits. */
static bool suits(const char *command, const struct settings *settings,
                  const struct spw_cli_usage *usage)
{
    const char *flag = usage->is_recording                             ? NULL
                       : has(&settings->check, SPW_CLI_LIMIT_GROWTH)   ? "--max-growth"
                       : has(&settings->check, SPW_CLI_LIMIT_CATEGORY) ? "--max-category"
                                                                       : NULL;

    if (flag != NULL) {
        spw_cli_complain(command,
                         "%s: a statistics file has no such figures (expected a recording, "
                         "which spillway run --record FILE writes)",
                         flag);
    }
    return flag == NULL;
}

static int check(const char *command, struct settings *settings)
{
    struct spw_cli_check *checked = &settings->check;
    bool written = true;

    if (!spw_cli_check_run(checked)) {
        spw_cli_complain(command, "not enough memory");
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (checked->usage->note[0] != '\0') {
        spw_cli_complain(command, "%s: %s", settings->path, checked->usage->note);
    }
    if (settings->json) {
        spw_cli_check_print_json(checked);
    } else {
        spw_cli_check_print(checked);
    }
    if (settings->junit != NULL && !spw_cli_check_write_junit(checked, settings->junit)) {
        spw_cli_complain(command, "--junit=%s: %s", settings->junit,
                         spw_create_problem(settings->junit));
        written = false;
    }
    return written && spw_cli_check_failures(checked) == 0 ? SPW_CLI_EXIT_OK
                                                           : SPW_CLI_EXIT_FINDINGS;
}

static int load_and_check(const char *command, struct settings *settings)
{
    struct spw_cli_usage usage, base = {0};
    int code = SPW_CLI_EXIT_FINDINGS;

    if (settings->base != NULL && !spw_cli_usage_load(command, settings->base, &base)) {
        return code;
    }
    if (spw_cli_usage_load(command, settings->path, &usage)) {
        settings->check.usage = &usage;
        settings->check.base = settings->base != NULL ? &base : NULL;
        code = suits(command, settings, &usage) ? check(command, settings) : SPW_CLI_EXIT_USAGE;
        spw_cli_check_free(&settings->check);
        spw_cli_usage_free(&usage);
    }
    spw_cli_usage_free(&base);
    return code;
}

int spw_cli_command_check(int argc, char **argv)
{
    static struct settings settings;
    const struct spw_cli_option options[] = {
        {"", .text = &settings.path},
        {"max-peak", .take = take_limit, .key = SPW_CLI_LIMIT_PEAK},
        {"max-spill", .take = take_limit, .key = SPW_CLI_LIMIT_SPILL},
        {"max-growth", .take = take_limit, .key = SPW_CLI_LIMIT_GROWTH},
        {"max-increase", .take = take_limit, .key = SPW_CLI_LIMIT_INCREASE},
        {"max-site", .take = take_limit, .key = SPW_CLI_LIMIT_SITE},
        {"max-category", .take = take_limit, .key = SPW_CLI_LIMIT_CATEGORY},
        {"base", .text = &settings.base},
        {"json", .given = &settings.json},
        {"junit", .text = &settings.junit},
        {0},
    };
    int code = spw_cli_arguments_read(argc, argv, options, help, &settings);

    if (code >= 0) {
        return code;
    }
    if (!is_usable(argv[0], &settings)) {
        return SPW_CLI_EXIT_USAGE;
    }
    code = load_and_check(argv[0], &settings);
    for (size_t i = 0; i < settings.check.limit_count; i++) {
        free((char *)settings.check.limits[i].pattern);
    }
    return code;
}
