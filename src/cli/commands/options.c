#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/launch/flags.h"
#include "common/options.h"

#include <stdio.h>
#include <string.h>

enum column { VARIABLE, FLAG, FALLBACK, MEANING, COLUMN_COUNT };

struct row {
    char flag[SPW_CLI_FLAG_NAME + 2];
    const char *cells[COLUMN_COUNT];
};

static void fill_row(enum spw_option option, struct row *row)
{
    const struct spw_option_row *source = spw_option_row(option);
    char name[SPW_CLI_FLAG_NAME];

    spw_cli_flag_name(option, name);
    snprintf(row->flag, sizeof(row->flag), "%s%s", *name != '\0' ? "--" : "", name);
    row->cells[VARIABLE] = source->name;
    row->cells[FLAG] = row->flag;
    row->cells[FALLBACK] = source->fallback;
    row->cells[MEANING] = source->help;
}

/* Prints a table whose columns, except the last, are as wide as their widest cell. */
static void print_table(void)
{
    static const char *const columns[COLUMN_COUNT] = {"variable", "flag", "default", "meaning"};
    struct row rows[SPW_OPT_COUNT];
    size_t widths[COLUMN_COUNT] = {0};

    for (int column = 0; column < MEANING; column++) {
        widths[column] = strlen(columns[column]);
    }
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        fill_row((enum spw_option)i, &rows[i]);
        for (int column = 0; column < MEANING; column++) {
            size_t length = strlen(rows[i].cells[column]);

            widths[column] = length > widths[column] ? length : widths[column];
        }
    }
    spw_cli_markdown_head(columns, COLUMN_COUNT, widths);
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        spw_cli_markdown_row(rows[i].cells, COLUMN_COUNT, widths);
    }
}

static const char help[] =
    "usage: spillway options [--markdown]\n\n"
    "Lists every option: its environment variable, its flag for spillway run and spillway\n"
    "sim, its default and its meaning. A flag takes precedence over the variable.\n\n"
    "  --markdown  print a Markdown table [the default]\n";

int spw_cli_command_options(int argc, char **argv)
{
    bool markdown;
    const struct spw_cli_option options[] = {{"markdown", .given = &markdown}, {0}};
    int code = spw_cli_arguments_read(argc, argv, options, help, NULL);

    if (code >= 0) {
        return code;
    }
    print_table();
    return SPW_CLI_EXIT_OK;
}
