#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/usage/merged_ranks.h"
#include "cli/usage/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOP = 20, FILES = 4096 };

struct settings {
    const char *paths[FILES];
    size_t count;
    size_t top;
    bool json;
};

static const char help[] =
    "usage: spillway ranks FILE... [--json] [--top N]\n\n"
    "Merges the files of the ranks of one job: the peak of each, how much they differ, and\n"
    "which lines hold more on some ranks than on others. Each file is a recording or a\n"
    "statistics file; --stats 'job-%r.json' gives each rank its own.\n\n"
    "  --top N  show N call sites that differ [20]\n"
    "  --json   print one JSON object, with all call sites\n\n"
    "A file is left out, with one line, if its process used no device memory, or if it has no\n"
    "rank and other files have one. The exit code is 0 also when the ranks differ, 1 when a\n"
    "file cannot be read, 2 for bad usage.\n";

static bool take_file(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    if (settings->count == FILES) {
        spw_cli_complain(from->command, "more than %d files", FILES);
        return false;
    }
    settings->paths[settings->count++] = from->value;
    return true;
}

static int print(const char *command, const struct settings *settings,
                 const struct spw_cli_usage *files, size_t count)
{
    struct spw_cli_merged_ranks merged;

    if (!spw_cli_ranks_merge(files, count, &merged)) {
        spw_cli_complain(command, "not enough memory");
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (settings->json) {
        spw_cli_ranks_print_json(&merged);
    } else {
        spw_cli_ranks_print_text(&merged, settings->top);
    }
    spw_cli_ranks_free(&merged);
    return SPW_CLI_EXIT_OK;
}

static bool uses_memory(const struct spw_cli_usage *file)
{
    for (int i = 0; i < file->device_count; i++) {
        if (file->devices[i].used) {
            return true;
        }
    }
    return false;
}

/* Frees the files that have no device memory. If any file has a rank, also frees the files that
 * have no rank. Writes a line to stderr for each freed file, and returns the number of remaining
 * files. */
static size_t leave_out(const char *command, struct spw_cli_usage *files, size_t count)
{
    bool ranked = false;
    size_t left = 0;

    for (size_t i = 0; i < count; i++) {
        ranked = ranked || (files[i].rank >= 0 && uses_memory(&files[i]));
    }
    for (size_t i = 0; i < count; i++) {
        const char *why = !uses_memory(&files[i])       ? "no device memory was used"
                          : ranked && files[i].rank < 0 ? "its process had no rank"
                                                        : NULL;

        if (why == NULL) {
            files[left++] = files[i];
        } else {
            spw_cli_complain(command, "%s: left out: %s", files[i].path, why);
            spw_cli_usage_free(&files[i]);
        }
    }
    return left;
}

/* Warns if two files belong to one rank, for instance a recording and a statistics file. Both files
 * are counted. */
static void tell_repeated(const char *command, const struct spw_cli_usage *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (files[i].rank >= 0 && files[i].rank == files[k].rank) {
                spw_cli_complain(command,
                                 "note: %s and %s are both of rank %" PRId64
                                 ", and each is counted as a rank",
                                 files[k].path, files[i].path, files[i].rank);
                return;
            }
        }
    }
}

static int merge(const char *command, const struct settings *settings)
{
    struct spw_cli_usage *files = calloc(settings->count, sizeof(*files));
    int code = SPW_CLI_EXIT_OK;
    size_t loaded = 0;

    if (files == NULL) {
        spw_cli_complain(command, "not enough memory");
        return SPW_CLI_EXIT_FINDINGS;
    }
    for (size_t i = 0; i < settings->count; i++) {
        if (spw_cli_usage_load(command, settings->paths[i], &files[loaded])) {
            loaded++;
        } else {
            code = SPW_CLI_EXIT_FINDINGS; /* a line said why */
        }
    }
    loaded = leave_out(command, files, loaded);
    tell_repeated(command, files, loaded);
    if (loaded == 0 || print(command, settings, files, loaded) != SPW_CLI_EXIT_OK) {
        code = SPW_CLI_EXIT_FINDINGS;
    }
    for (size_t i = 0; i < loaded; i++) {
        spw_cli_usage_free(&files[i]);
    }
    free(files);
    return code;
}

int spw_cli_command_ranks(int argc, char **argv)
{
    static struct settings settings = {.top = TOP};
    const struct spw_cli_option options[] = {
        {"", .take = take_file},
        {"json", .given = &settings.json},
        {"top", .number = &settings.top},
        {0},
    };
    int code = spw_cli_arguments_read(argc, argv, options, help, &settings);

    if (code >= 0) {
        return code;
    }
    if (settings.count == 0) {
        return spw_cli_bad_usage(argv[0], "expected the files of a job");
    }
    return merge(argv[0], &settings);
}
